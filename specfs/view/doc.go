// Package view is the client of a file system as a node of package protocol: what it knows of the
// server's records, and the epochs that the server has not answered yet.
//
// A program asks for operations. The view executes each on what it knows, with the code that the
// server runs, and fetches what it lacks. What the operation saw becomes an assumption of an epoch,
// what it changes a step of it; the epoch's changes are a layer above what is known, so that later
// operations see them, and nobody else. When the server accepts the epoch the layer becomes part of
// what is known. If the server refuses it the layer goes, and all above it.
//
// Systems differ in when a program gets its answer, and in what has to be asked for: see [System].
package view

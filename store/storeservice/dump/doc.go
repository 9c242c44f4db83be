// Package dump has a store's snapshot as a file: lines of JSON that say which snapshot it is, what
// each key held, and how far each page went, so that writing one can be taken up again.
package dump

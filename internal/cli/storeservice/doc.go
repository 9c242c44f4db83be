// Package storeservice is what the commands of foresay store run: a machine with its disk and its page of figures, a whole store in one process for development, and clients of
// both.
package storeservice

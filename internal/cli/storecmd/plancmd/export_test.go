package plancmd

// Document is what --json writes.
type Document = document

package plancmd

// Document is what --json of smr plan writes.
type Document = document

// Package mvcc keeps several versions of each key in a node's key space, so that a snapshot of any
// timestamp can be read, copied and exported: what stores share whose transactions have timestamps.
//
// A [Store] has the versions: each is found by its key and a timestamp, a deletion is a version
// like others, and versions that no snapshot needs any more are collected below a horizon that only
// rises. [Reads] is for whoever serves reads at timestamps: it lets a read be answered only at or
// below a ceiling that is on record, and says above which timestamp a later write has to be, so
// that a snapshot that was read never changes. See DESIGN.md.
package mvcc

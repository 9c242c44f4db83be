// Package wal keeps what the nodes of one process must not forget: a log of records and an ordered
// key space for each.
//
// A [Store] is a directory on a disk. Each [Node] of it is a namespace: records with consecutive
// indexes from 1, truncated from below, and keys. A node hands in batches with [Node.Commit]; a
// batch is atomic, batches become durable in the order in which they came, and what gathered while
// the disk was busy is made durable by one sync, over all nodes of the store. A committed batch is
// visible through [Node.Keys] at once, durable or not. This is the disk that package protocol's
// contract asks of a runner.
//
// # Failing stop
//
// After an error of a sync, nobody knows what is on the disk: the kernel may have dropped the pages
// and report success the next time. So the first error of a write, a sync, a full disk or a read of
// damaged data stops the store. It does not touch the disk any more, nothing that was not durable
// is acknowledged, and each later Commit gets the same error, as [Store.Err] does. The process is
// to end; opening the directory again finds all that was acknowledged, and perhaps more, in order
// and without gaps.
//
// # On the disk
//
// A directory holds the file FORESAY, which names the format's version and the disk's identity, a
// lock against other processes, and a Pebble database. DESIGN.md says why it is Pebble, and what
// was measured.
package wal

// Package waldisk makes a node of a wal.Store the disk of a node of a host. It stands apart from
// package host so that programs without a disk, clients say, do not link the database.
package waldisk

// Package faultfs is a disk in memory that loses what was not synced, and fails when it is told to.
//
// A [Disk] is a file system of Pebble's kind. It knows what each file and directory would hold
// after a crash: a write is on the disk when its file was synced after it, a new name when its
// directory was. [Disk.Crash] gives the disk that a machine finds after its power failed now: of
// the writes and names that were not synced, some are there, some are not, and some writes are torn
// at sectors of 512 bytes. A seed chooses. [Disk.Moments] goes through the points before each
// operation of a run that was traced: one run shows all its crashes.
//
// [Disk.Inject] makes operations fail. A sync that fails drops what it should have written, as the
// page caches of Linux do: it can still be read, later syncs succeed, and after a crash it is gone.
//
// The model is harsher than most file systems: a file's sync does not make its name durable, names
// of one directory are lost in any order that keeps a prefix of the changes, and space that was
// extended may hold zeros.
package faultfs

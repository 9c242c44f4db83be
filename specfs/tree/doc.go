// Package tree is the file system as a state machine: operations of package specfs on an ordered
// space of keys. It knows nothing of disks, sessions or the network. The server runs it on the
// truth, a client on what it has cached, and as both run the same code, a client's result is the
// server's if the client had the same versions of what the result depends on. [Do] says what that
// is.
//
// The semantics are Linux's, errors and the order in which they are checked included, with these
// differences: reading does not change a file's time of access; permissions for data are checked at
// each operation, not only when a file is opened, but a file's owner keeps what an open file allows
// (as with NFS); an object whose last name was taken away stays until [specfs.Reap] removes it.
package tree

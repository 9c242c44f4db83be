// Package etcd speculates on reads of etcd: what the nearest member says at
// once is the prediction of the linearizable read.
//
// A [KV] is a clientv3.KV made of two clients, which may be one and the same. In
// a foresay.Do, Go or Then, Get asks both at the same time: the near member for
// a serializable read, which it answers by itself and which may be stale, and the
// far one for the linearizable read that was asked for. The code goes on with the
// serializable answer. When the linearizable one is in, their keys and
// ModRevisions are compared; if these differ, what was done meanwhile is thrown
// away and done again with the linearizable answer. So what the code returns, and
// whatever it puts, never stands on a stale read. Outside of a task a KV is an
// ordinary one.
//
// # What a predicted answer is
//
// Of an accepted answer, Kvs, Count and More are those of the linearizable read,
// since the ModRevision of a key tells its value. Header is the near member's: its
// Revision is one at which these keys were as in the answer, but it may be older
// than that of the linearizable read, and so than a Put that was answered before.
// To read at that revision, or to watch from the next one, misses nothing. Code
// that compares the revisions of different answers needs Config.SameRevision,
// with which an answer is accepted only if its revision is equal, too.
//
// # Reads
//
// Get takes all options. With WithCountOnly there are no ModRevisions, and the
// count is all that has to be equal. With WithRev, where the revision is fixed,
// only the near member's being behind makes a difference. WithSerializable asks
// the near member, and its answer is the result. A Txn without writes is a read
// like Get. GetStream waits until everything before it is confirmed.
//
// Reads are ordered: in one goroutine, a linearizable read is sent when the
// earlier ones are answered, so that a later one never sees an older state. The
// code does not wait for that, but what it returns does. Config.Concurrent gives
// that order up.
//
// # Writes
//
// Put, Delete, Compact, and a Txn with a write in any branch, are effects: they
// wait until everything that the code did before is confirmed, and are then made
// once, however often the code is run.
package etcd

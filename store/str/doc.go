// Package str is a transactional store over many sites in which transactions build on what is not
// committed yet: speculative transactional replication [STR]. A partition has copies at some of the
// sites. A transaction reads a snapshot, which is chosen when it begins, and is certified first at
// its own site and then everywhere. Between the two it is committed locally: the next transactions
// of the same coordinator see what it wrote, and are undone with it. What a client is told is
// committed is never undone.
//
// The level is strong session snapshot isolation, which lets write skew happen; a session is a
// client's node. Mode internal is the protocol; mode clocksi-rep, without speculation and with
// commits above all clocks, is what the paper compares it with. Programs that go on when their
// transactions are committed locally are not built yet. How far transactions build on what is not
// final, the coordinators choose by what becomes of them. DESIGN.md says where the protocol differs
// from the paper, and why it is right.
package str

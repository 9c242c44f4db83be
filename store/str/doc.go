// Package str is a transactional store over many sites in which transactions build on what is not
// committed yet: speculative transactional replication [STR]. A partition has copies at some of the
// sites. A transaction reads a snapshot, which is chosen when it begins, and is certified first at
// its own site and then everywhere. Between the two it is committed locally: the next transactions
// of the same coordinator see what it wrote, and are undone with it. A commit that a client is told
// of is never undone, unless the client has asked to hear of local ones.
//
// The level is strong session snapshot isolation, which lets write skew happen; a session is a
// client's node. Mode internal is the protocol; mode clocksi-rep, without speculation and with
// commits above all clocks, is what the paper compares it with. In mode internal a client may go on
// when its transaction is committed locally: what it does next depends on that, and a transaction
// that stands on guesses of the client's own is committed only after the client's word. DESIGN.md
// says where the protocol differs from the paper, and why it is right.
package str

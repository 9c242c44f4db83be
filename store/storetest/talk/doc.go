// Package talk plays scenarios of transactional stores that are written as text, and writes down
// what clients, coordinators and servers say to each other. Package transcript says how they are
// written.
//
// The sites are a, b, ...; so are their coordinators, and their servers are a/0, a/1, ..., one for
// each shard. Client c1 is at site a, c2 at b. Transactions are t1, t2, ..., in the order in which
// they come up, and so are the versions that they write. The family's own commands are
//
//	begin sites=3 shards=1 clients=1 rtt=20ms
//	                      makes a store and lets all its servers be admitted; with these numbers
//	                      unless it says others
//	read c1 x y           has a client read keys, for its next transaction
//	declare c1 x y=       has it begin one that reads x and writes y, if the protocol knows keys ahead
//	commit c1 x=1 y=2     has it commit a transaction that has read those, and writes these, if any
//	state                 tells what the servers hold that are up, and what they are at
//
// and what can be expected is
//
//	answered              all reads and commits are
//	x=1                   the servers of the key's shard that are up hold that
//	idle                  no server that is up has an undecided transaction or a lock
package talk

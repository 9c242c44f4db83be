// Package replicatedcommit is Replicated Commit [SpecRPC §4.1; Mahmoud et al., VLDB 2013]:
// transactions on a key-value store of which each site, a datacentre, has a whole copy in shards. A
// transaction reads from a majority of the sites and buffers its writes; then every site votes on
// it, all its shards being of one mind, and it commits if a majority of the sites said yes. That
// takes one round trip to the nearest majority.
//
// There are three pure nodes. A server has one shard of one site: values, locks, votes; all that
// is durable is there. A coordinator gathers the votes of its site and of the others, and has its
// shards carry out what they add up to; it remembers nothing that it cannot ask for again. A
// client reads, submits transactions and asks for outcomes, for the application that it belongs
// to.
//
// Transactions are strictly serializable, those that only read included. See DESIGN.md for why, and
// for what can block.
package replicatedcommit

// Package store is the vocabulary of replicated transactional key-value stores: keys, versions,
// transactions, and how they end.
//
// A transaction reads keys, each with the version that it found, and buffers what it writes in a
// [Buffer]. Then it is committed as one [Txn]: if what it read is still so, its writes take effect
// at once, at all keys. All versions that a transaction writes are the one that names it, so the
// versions of a key follow the order in which transactions took effect. Protocols of the family are
// in packages below this one.
package store

// Package tapir is a store whose replication promises no order [Zhang et al., TOCS 2018]: a shard's
// servers each check a transaction by themselves, and agree on what came out of it, in one round
// trip if all of a fast quorum say the same. Below is inconsistent replication (IR): operations
// that are executed in any order, results that are agreed on, and a view change that merges the
// records of a majority. Above is optimistic concurrency control with timestamps from clients'
// clocks.
//
// Transactions are serializable, in the order of their timestamps. They are not strictly
// serializable: a transaction that began after another one had ended may come before it. A
// transaction that reads may read at the nearest server alone; the commit says whether that was
// right. See DESIGN.md.
package tapir

// Package history judges what a system was seen to do: it records operations and transactions with
// the times at which they were called and returned, and says whether a correct system could have
// answered so.
//
// Four checkers, for four kinds of history:
//
//   - [CheckLinearizable] takes single operations on any sequential [Model] ([KVModel] is a
//     key-value store) and asks whether they could have happened one at a time, each between its
//     call and its return [Herlihy and Wing, 1990]. It searches, so it has a time limit:
//     [Undecided] is never a pass.
//   - [CheckTransactions] takes transactions with unique written values and the order of each key's
//     versions, and looks for the phenomena of Adya's thesis (1999, chapters 3 and 4) that a
//     [Level] forbids. It takes linear time.
//   - [CheckReplication] takes the commands that the replicas of a state machine applied.
//   - [CheckSpeculation] takes every execution of a store's transactions, the aborted ones too, as
//     the store itself knows them, and asks whether what each saw of others that were not final was
//     a snapshot under speculative snapshot isolation.
//
// An operation whose client got no answer has the [Outcome] [Unknown]: it may have taken effect, at
// any time after its call, or not at all. That is the zero value, so what nobody said is never
// taken for a success.
//
// Histories are plain values. [KV] and [Transactions] are written as text, one operation to a line,
// or as JSON, and read back by [ParseKV] and [ParseTransactions], so that a failing history can be
// kept, cut down and looked at:
//
//	history kv
//	op client 1 1ms..3ms put "x" "1" ok
//	op client 2 2ms..? put "x" "2" unknown
//	op client 3 4ms..5ms get "x" "1"
//
//	history transactions
//	versions "x" "a" "b"
//	txn 7 client 1 1ms..2ms committed read "x" "a" write "x" "b"
//
// Times are offsets from an instant of the caller's choice on one clock, virtual or real. Two
// operations of which one returns at the very time when the other is called count as concurrent.
package history

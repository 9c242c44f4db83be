// Package client is the Go client of a transactional store: ordinary code that reads, decides and
// writes, with transactions that do not wait for their reads.
//
//	c, err := client.New(client.Config{Backend: conn})
//	...
//	err = c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
//		balance, _, err := tx.Get(ctx, "account/7")
//		if err != nil {
//			return err
//		}
//		return tx.Put("account/7", add(balance, 10))
//	})
//
// # What a transaction's function may do
//
// It may run more than once: when a transaction was refused and is tried again and, in mode Spec,
// when a read was guessed wrong. Runs that are given up may still be going on when a later one
// begins, so a function must not write to variables outside of it: what is to leave it is returned,
// through [Run]. It must do the same each time for the same answers, and touch the world only by
// the transaction or with the means of package foresay (Memo for the time and for random numbers).
// Nothing that it writes leaves it before the transaction is committed, and everything it returns,
// errors and panics included, rests on reads that were valid at one moment: a function that fails
// because of what it read is not believed before the store has said that it read the truth.
//
// # Outcomes
//
// A nil error: the transaction is committed, at all sites for good. [AbortedError]: it took no
// effect. [UnknownError] and [BlockedError]: nobody could tell yet; it has taken effect once, or
// will, or never will, and [Client.Resolve] asks again. Trying such a transaction again can execute
// it twice. [RejectedError]: it was never sent, as it is malformed or nobody could be reached.
// [UnavailableError]: too few sites answered reads; it took no effect. [CanceledError]: its context
// was cancelled while it read; it took no effect. [MayHaveCommitted] tells the two kinds apart. A
// context's end is wrapped by one of these errors. Who gives up waiting for a future gets
// [foresay.ErrUnfinished], of which nobody can tell either.
//
// # Keys that are known
//
// A program that knows which keys a transaction is going to read and to write may declare them, by
// [Keys]. It is a hint, which saves round trips where it is right, and costs time where it is not.
//
// # Modes
//
// Mode Spec answers a read with the first replica's value at once and goes on, while the quorum is
// still under way; the version decides whether that was right, and if it was not the function runs
// again from the top, with all other answers that are in already [SpecRPC §4.1, §5.2]. The commit
// request leaves when all reads are known. Mode Predicated asks the nearest site only, and sends
// the commit request when the function returns: it names the versions that were read, and takes
// effect only if they are those that count. An uncontended transaction takes one round trip to the
// nearest other site, however many dependent reads it makes. Mode Auto is Predicated or Spec, for
// each class of transactions ([WithClass]) what pays. Mode Off is Spec without guessing. Mode GRPC
// is plain: each read waits for its quorum, and the engine is not involved; these two are there to
// compare with.
//
// Inside a task of package foresay, a handler say, a transaction is part of the task: its reads may
// be guesses of the task's, its commit waits for all that the task assumed before, and Predicated
// is Spec.
//
// # Local commits
//
// Some stores commit a transaction locally first, at the client's site, and for good a wide-area
// round trip later [STR §4]: STR in mode internal does. In a task, Txn and Run then return at the
// local commit, unless the mode is Off or GRPC. The outcome is a guess like others: the task's code
// goes on, its next transactions build on this one and are committed only if it is, and they do not
// wait for each other. Barrier, Act, other calls with effects and the end of the task wait until
// all is final. If a transaction is refused, the code runs again from there. Nothing that a program
// does in this way shows a commit that is not final.
//
// Outside of tasks Txn returns when the transaction is final. Code that is to go on earlier, and
// can take back what it has said, asks for it with [Tentative]. A store without local commits
// rejects such a transaction, and so does a task.
package client

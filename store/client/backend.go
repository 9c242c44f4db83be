package client

import (
	"context"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
)

// A Backend makes attempts of transactions at the sites of a store: what a protocol's connection
// offers, such as front.Conn. Its methods may be called concurrently.
type Backend interface {
	// Begin begins an attempt, which lasts until its End. It does not wait.
	Begin(b Beginning) Attempt
	// Resolve asks again for the outcome of a transaction that was unknown or blocked.
	Resolve(ctx context.Context, txn store.Txn) Decision
	// Promises returns the level of committed transactions.
	Promises() history.Level
	// Stales reports whether transactions can have a level Stale.
	Stales() bool
}

// A Beginning is what is known of an attempt when it begins.
type Beginning struct {
	Priority store.Priority // of the first attempt; zero: this is the first
	Mode     Mode           // how its reads are waited for
	Level    Level          // what it asks for; 0: what the store has
	// Reads and Writes are keys that it is going to read and to write, as far as is known, each in
	// ascending order and none twice. What is wrong with them costs time only: see Keys.
	Reads, Writes []store.Key
	// Explain says that it is traced: sites are to say how it came to its end, where they know that.
	Explain bool
}

// An Attempt is one try of a transaction at the sites: it reads, and commits or ends. However often
// the transaction's function runs meanwhile, there is one Attempt for all runs. Its methods may be
// called concurrently.
type Attempt interface {
	// Read returns what a quorum knows of a key. If somebody's answer comes before, first is called
	// with it, at most once and before Read returns; it may be another one. nil: nobody wants it. A
	// priority reserves the key. The error is an UnavailableError, which wraps ctx's if that is why,
	// or an EndedError.
	Read(ctx context.Context, key store.Key, first func(Answer)) (Answer, error)
	// ReadNearest returns what the nearest site that answers holds, which may be old.
	ReadNearest(ctx context.Context, key store.Key) (Answer, error)
	// Commit commits the transaction, which it names. When ctx ends before the outcome is known,
	// that is Unknown, or Rejected if nothing was sent. It is called once at most.
	Commit(ctx context.Context, s Submission) Decision
	// Stale reports whether a quorum refuses reads because some are not valid any more.
	Stale(ctx context.Context, reads []store.Read) bool
	// End ends what the attempt has left at the sites, unless that is the commit's to end. Calls
	// that are under way, or come later, are answered as if there had never been more.
	End()
}

// An Answer is what is known of a key.
type Answer struct {
	Value store.Value
	Site  string // whose answer it is, or was the last that was needed
	// Settled says that a transaction which reads this key and does nothing else is committed with
	// this value: nobody need validate it.
	Settled bool
}

// A Submission is a transaction that is to be committed.
type Submission struct {
	Reads  []store.Read  // in ascending order of keys, no key twice
	Writes []store.Write // the same
	// Hold says that the nearest site had better wait a little for keys that other transactions
	// have than refuse at once.
	Hold bool
}

// A Decision is how a transaction ended.
type Decision struct {
	// Txn has the name and the priority that it was given. One that only reads has no name if what
	// it read is right without anybody's word.
	Txn     store.Txn
	Outcome store.Outcome
	Site    string // whose vote was the last that was needed; empty if none's
	// At is the timestamp as of which a transaction has read that was Stale, and Age how long ago that
	// was when it was read. 0: it has seen what there was.
	At  uint64
	Age time.Duration
	// Version is that of what a committed transaction has written. Zero: it is not known.
	Version store.Version
	// Current says, of an aborted transaction, what its reads should have been, as far as is known.
	Current []Current
}

// Current is what a site that refused a transaction holds under a key that the transaction read: a
// later value or, if Locked, one that is about to change.
type Current struct {
	Key    store.Key
	Locked bool
	Value  store.Value
}

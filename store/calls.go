package store

import "time"

// What applications and their client nodes say.
type (
	// Get reads a key from a majority of the sites. Got answers it.
	Get struct {
		Ref      uint64 // of the application's choice, as in all its calls
		Key      Key
		Priority Priority // of a transaction that is tried again
		// Nearest asks the nearest site only, and others if that does not answer. Got is the first
		// answer then, which may be old.
		Nearest bool
	}

	// Got is what a majority knows, or not OK: none answered in time.
	Got struct {
		Ref     uint64
		OK      bool
		Value   Value
		Pending bool // somebody is about to change it, or blocks it
		// Settled says that a majority has answered, and nobody of it is about to change the key:
		// one who reads nothing else needs no validation.
		Settled bool
		Full    bool // nobody was asked: too many reads wait
		Site    int  // whose answer was the last that was needed, by its place in the layout
	}

	// First is the first answer to a Get. It comes before Got, unless that is the same, and is a
	// guess at it.
	First struct {
		Ref     uint64
		Value   Value
		Pending bool
		Site    int
	}

	// Cancel says that nobody waits for the answer to a call any more. A Submit or Query is
	// answered with what is known; a Get is not answered.
	Cancel struct{ Ref uint64 }

	// Declare begins a transaction some of whose keys are known, for protocols that prepare them while
	// they are read (Protocol.Declares). Declared answers it. The transaction goes on until a Submit
	// that names it, or an Abandon. To have declared other keys than are used costs time only.
	Declare struct {
		Ref    uint64
		Reads  []Key // in ascending order, no key twice
		Writes []Key // the same; empty only where such transactions read as of a time (Protocol.Clocked)
		// Serializable says that without Writes it need not be in the order of real time.
		Serializable bool
		// Begun is the Ref of the Declare that has begun the transaction: its code has reached these keys
		// since. Zero: this one begins it. General says that this one is the first of such steps: the
		// keys are prepared, also without Writes, as the transaction is going to write.
		Begun   uint64
		General bool
		// Priority is the age of a transaction that is tried again; zero: it is tried for the first time.
		Priority Priority
		// MaxAge says that without Writes it may see the store as it was so long ago, but for what this
		// node has seen since, which it sees (Protocol.Stale). With At it goes on with an earlier one, as
		// of the same timestamp: that of its Declared. 0: it sees what there is.
		MaxAge time.Duration
		At     uint64
	}

	// Declared is what the keys hold that a transaction has declared to read, or not OK: nobody
	// answered in time, or until the Submit, or the transaction is over.
	Declared struct {
		Ref    uint64
		OK     bool
		Values []Held // in the order of the keys
		// At is the timestamp of which the values are, and Age how long ago that was when they were read.
		// 0: they are of no timestamp, but what there was when they were asked for.
		At  uint64
		Age time.Duration
	}

	// Abandon ends a transaction that Declare has begun and that will not be submitted. It is not
	// answered.
	Abandon struct{ Ref uint64 } // of the Declare that has begun it

	// Submit commits a transaction. Done answers it.
	Submit struct {
		Ref      uint64
		Priority Priority // of the first attempt; zero: this is the first
		Reads    []Read
		Writes   []Write
		Begun    uint64 // the Ref of the Declare that has begun it; zero: none has
		// Hold has the nearest site hold its vote back, as in CommitRequest. It does nothing before
		// there were reads, as nobody knows which site that is.
		Hold bool
		// Serializable says that it need not be in the order of real time if it only reads.
		Serializable bool
		// Explain is as in CommitRequest.
		Explain bool
		// Absent are the places of sites that there is no connection to: they are away until they
		// answer.
		Absent []int
		// Speculate asks for Speculated, too: see SpeculateRequest, as for Held, Waits and After. The
		// application says later, by a Settle, what became of its own guesses.
		Speculate, Held, Waits bool
		After                  []TxnID
	}

	// Speculates says that a transaction is committed locally. It comes before Done, or not at all.
	Speculates struct {
		Ref uint64
		ID  TxnID
	}

	// Settle says that what an application stood on when it submitted a transaction that is Held was
	// right. If it was wrong, or nobody wants the transaction any more, it is Refuted, Held or not: if
	// it can be aborted still, it will be.
	Settle struct {
		Ref     uint64 // of the Submit
		Refuted bool
	}

	// Query asks again for the outcome of a transaction that was unknown or blocked. Done answers
	// it.
	Query struct {
		Ref uint64
		Txn Txn // as Done had it
	}

	// Done says how a transaction ended. Txn has its ID, and the priority for the next attempt.
	Done struct {
		Ref     uint64
		Txn     Txn
		Outcome Outcome
		Version Version   // of what a committed one has written; zero: the store does not tell it
		Current []Current // of an aborted one: what its reads should have been, as far as votes said
		Site    int       // whose vote or word was the last that was needed, by its place in the layout, or NoSite
	}
)

// NoSite is Done.Site where no site's word was the last.
const NoSite = -1

package store

import (
	"errors"
	"fmt"
	"time"
)

// What clients and sites say.
type (
	// ReadRequest asks a shard for a key. With a priority it reserves the key for an older
	// transaction than those that may come.
	ReadRequest struct {
		Ref      uint64
		Key      Key
		Priority Priority
	}

	// ReadReply answers it.
	ReadReply struct {
		Ref     uint64
		Value   Value
		Pending bool   // a transaction that is not decided has the key, and has had it for long
		Hint    uint64 // the client's next version must be above it
		// Queued says that it is not the transaction's turn: older ones that were refused before
		// are going to change the key. The client had better ask again.
		Queued bool
		// Led says that the server leads the shard, of a protocol whose shards are led (Protocol.Leads).
		Led bool
	}

	// CommitRequest asks a coordinator, one of each site, to have its site vote. It can be
	// repeated. Recover is for one that got no answer: what is known of a decision is found out
	// then, and sites that have not voted are made to.
	CommitRequest struct {
		Txn     Txn
		Recover bool
		// Firm says that another site has voted yes already: reservations are no reason to vote no.
		Firm bool
		// Hold says that the vote may wait a round trip for keys that other transactions have or
		// are to have. One site at most is asked so, the nearest, as its vote alone comes before
		// those of others; while a site is silent, none is. A transaction that only reads is not
		// held back.
		Hold bool
		// Serializable says that the transaction need not be in the order of real time if it only
		// reads: for protocols whose reads depend on clocks for that (Protocol.Clocked).
		Serializable bool
		// Explain says that the client wants to know how the transaction came to its end: Decided has its
		// Course, if the protocol's coordinators know that.
		Explain bool
	}

	// SpeculateRequest is a CommitRequest whose client goes on when its transaction is committed
	// locally (Protocol.Speculates): Speculated answers it then, and again every few round trips, as
	// long as the client repeats it, until Decided does.
	SpeculateRequest struct {
		CommitRequest
		// Held says that the client stands on what is not known to be right: the transaction may be
		// certified, and must not be committed for good before a request without Held. An AbandonRequest
		// says that the client was wrong.
		Held bool
		// After are transactions of the same coordinator that the client took for committed: unless they
		// are, this one is not.
		After []TxnID
		// Told says that the client knows of the local commit, and waits for what comes after it.
		Told bool
		// Waits says that the client stands on nothing but After, and may yet give up: the coordinator
		// waits for its word as with Held, and nobody else knows of that. If the coordinator is lost,
		// what became of After decides.
		Waits bool
	}

	// Speculated tells a client that its transaction is committed locally: it may still be refused. At
	// is the timestamp, which the snapshots are to have that see it.
	Speculated struct {
		ID TxnID
		At uint64
	}

	// SiteVote says how a site votes, to clients and to coordinators of other sites.
	SiteVote struct {
		ID     TxnID
		Shards []uint32
		Yes    bool
		Reason Reason
		Hint   uint64
		// Current are keys that were read and have changed, or are about to; to clients only, and
		// perhaps not all.
		Current []Current
	}

	// Current is what a server that refuses a transaction holds under a key that the transaction
	// read: a later value or, if Locked, one that has to be read, as it is about to change or too
	// big to be sent along.
	Current struct {
		Key    Key
		Locked bool
		Value  Value
	}

	// DeclareRequest begins a transaction at a coordinator, which has its keys prepared while they
	// are read (Protocol.Declares). DeclareReply answers it once all values are there. The client
	// repeats it until it asks for the commit, to say that it is still there.
	DeclareRequest struct {
		ID     TxnID
		Reads  []Key // in ascending order, no key twice
		Writes []Key // the same
		// Serializable is as in CommitRequest.
		Serializable bool
		// MaxAge says that the transaction, which only reads, may see the store as it was so long ago,
		// but as of no timestamp before NotBefore (Protocol.Stale). With At it goes on with one that
		// has read as of that timestamp. 0: it sees what there is.
		MaxAge    time.Duration
		NotBefore uint64
		At        uint64
		// Step says that the transaction's code has just reached these keys, after those of its earlier
		// steps, which are numbered from 1 on. The transaction is going to write, so all of them are
		// prepared, also if a step has no Writes, and the values are those that their leaders prepare. 0:
		// the keys are those that were known when the transaction began.
		Step uint32
		// Priority is the age of a transaction that is tried again; zero: it is tried for the first time.
		Priority Priority
	}
	DeclareReply struct {
		ID     TxnID
		Step   uint32
		Values []Held // in the order of the keys that are read; none: what was asked for cannot be read
		// At is the timestamp of which the values are, and Age how long ago that was. 0: they are of no
		// timestamp, but what there was when the request came.
		At  uint64
		Age time.Duration
	}

	// Held is what a site holds under a declared key.
	Held struct {
		Value Value
		Site  uint32 // its place in the layout
		// Large says that the value is too big to be sent along, and has to be read.
		Large bool
	}

	// AbandonRequest tells a coordinator that a transaction which a DeclareRequest has begun will not
	// be committed. It is not answered.
	AbandonRequest struct{ ID TxnID }

	// PageRequest asks a server for a page of the snapshot of a timestamp: of what was there then, in
	// the order of the keys (Protocol.Snapshots). PageReply answers it.
	PageRequest struct {
		Ref   uint64
		Shard uint32
		At    uint64 // 0: the present
		From  []byte // where the page begins, as the last one's Next; nil: at the beginning
	}
	PageReply struct {
		Ref uint64
		At  uint64
		// Reason is NoReason, or Locked: transactions may still get such a timestamp, so that one has to
		// ask again, or Ahead: it is in the future, or Old: versions that the snapshot needs are gone, or
		// Fenced: this server serves no reads.
		Reason  Reason
		Horizon uint64 // the earliest timestamp that has a snapshot still
		Items   []Item
		Next    []byte // nil: there is no other page
	}

	// An Item is a value with its key.
	Item struct {
		Key   Key
		Value Value
	}

	// Busy tells a client that a coordinator remembers as many transactions as it may, and has done
	// nothing with a CommitRequest or DeclareRequest.
	Busy struct{ ID TxnID }

	// Decided tells a client how its transaction ended.
	Decided struct {
		ID      TxnID
		Verdict Verdict // Committed, Aborted or Unknown
		Reason  Reason
		// Version is that of what a committed transaction has written, if the protocol is one that tells
		// it (Protocol.Stale).
		Version Version
		// Fast is as in Outcome.
		Fast bool
		// Held is as in Outcome.
		Held time.Duration
		// Current are, of an aborted transaction, keys that it has read and that hold something else, as
		// far as is known.
		Current []Current
		// Course is as in Outcome: for those who have asked for it (CommitRequest.Explain).
		Course *Course
	}
)

// MaxSteps is how many steps a transaction has at most whose code reaches keys one after the other
// (DeclareRequest.Step). What it reaches afterwards is prepared with its commit.
const MaxSteps = 14

// Bytes returns how large what a request carries is.
func (m CommitRequest) Bytes() int { return ContentBytes(m.Txn.Reads, m.Txn.Writes) }

// dated reports whether the request says how old what it is told may be.
func (m DeclareRequest) dated() bool { return m.MaxAge != 0 || m.NotBefore != 0 || m.At != 0 }

// Bytes returns how large what a declaration carries is.
func (m DeclareRequest) Bytes() (n int) {
	for _, keys := range [][]Key{m.Reads, m.Writes} {
		for _, k := range keys {
			n += len(k)
		}
	}
	return n
}

// Validate returns an error that says what is wrong with a declaration, or nil.
func (m DeclareRequest) Validate() error {
	switch {
	case m.ID.IsZero():
		return errors.New("store: a transaction without an ID")
	case len(m.Reads)+len(m.Writes) == 0:
		return errors.New("store: a declaration without a key")
	case m.MaxAge < 0 || m.MaxAge == 0 && m.NotBefore+m.At > 0 && m.Step == 0:
		return fmt.Errorf("store: a declaration of what may be %v old, not before %d, at %d", m.MaxAge, m.NotBefore, m.At)
	case m.Step > MaxAccesses:
		return fmt.Errorf("store: step %d of a declaration (the limit is %d)", m.Step, MaxAccesses)
	case m.Step > 0 && m.MaxAge > 0:
		return errors.New("store: a step of a transaction that writes, and may see what is old")
	case m.MaxAge > 0 && len(m.Writes) > 0:
		return errors.New("store: a declaration of a transaction that writes, and may see what is old")
	}
	return ValidKeys(m.Reads, m.Writes)
}

// ValidKeys returns an error that says what is wrong with the keys that a transaction declares to
// read and to write, or nil.
func ValidKeys(reads, writes []Key) error {
	bytes := 0
	for _, of := range []struct {
		what string
		keys []Key
	}{{"read", reads}, {"write", writes}} {
		for i, k := range of.keys {
			switch {
			case i > 0 && k == of.keys[i-1]:
				return fmt.Errorf("store: the key %.40q is declared twice, to %s it", k, of.what)
			case i > 0 && k < of.keys[i-1]:
				return fmt.Errorf("store: declared keys: %.40q comes after %.40q", k, of.keys[i-1])
			case len(k) > MaxKeyBytes:
				return fmt.Errorf("store: a declared key of %d bytes (the limit is %d)", len(k), MaxKeyBytes)
			}
			bytes += len(k)
		}
		if len(of.keys) > MaxAccesses {
			return fmt.Errorf("store: %d keys are declared, to %s them (the limit is %d)", len(of.keys), of.what, MaxAccesses)
		}
	}
	if bytes > MaxDeclaredBytes {
		return fmt.Errorf("store: declared keys of %d bytes (the limit is %d)", bytes, MaxDeclaredBytes)
	}
	return nil
}

// FitValues returns the values of a site as they fit into room bytes of a message: those that find
// no room are marked as Large, and sent without their bytes.
func FitValues(values []Held, room int) []Held {
	for i := range values {
		v := &values[i]
		if room -= len(v.Value.Bytes); room < 0 {
			*v, room = Held{Site: v.Site, Large: true}, room+len(v.Value.Bytes)
		}
	}
	return values
}

// FitCurrent returns what is held in place of what was read as it fits into room bytes of a
// message, keys aside: what finds no room is marked as Locked, and has to be read. The keys are
// among those that the transaction has read, so MaxTxnBytes bounds them.
func FitCurrent(current []Current, room int) []Current {
	for i := range current {
		c := &current[i]
		if room -= len(c.Value.Bytes); room < 0 {
			*c, room = Current{Key: c.Key, Locked: true}, room+len(c.Value.Bytes)
		}
	}
	return current
}

// leastRate is a rate at which transactions surely get to a site, in bytes a second.
const leastRate = 4 << 20

// SendTime returns how long it takes at most to send so many bytes to a site.
func SendTime(bytes int) time.Duration { return time.Duration(bytes) * time.Second / leastRate }

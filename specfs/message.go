package specfs

import (
	"fmt"
	"time"
)

// A Message is anything that a client and a server exchange, or a client and its programs.
type Message any

type (
	// SessionID names a session: one client process and what it holds. The upper half of the IDs of
	// all objects that it makes is its session's.
	SessionID uint32
	// Number counts the epochs of a session, from 1 on.
	Number uint64
	// Era counts the refusals of a session's epochs.
	Era uint64
)

// IDs returns the first ID that a session may give to an object. It has 2^32.
func (s SessionID) IDs() ID { return ID(s) << 32 }

// Session returns whose ID it is.
func (id ID) Session() SessionID { return SessionID(id >> 32) }

// Provisional returns what stands for the version of what an epoch of a session changes, as long as
// the client does not know the serial number of its transaction.
func (n Number) Provisional() Version { return provisional | Version(n) }

const provisional Version = 1 << 63

// Epoch returns the epoch whose changes a version stands for, if it is a provisional one.
func (v Version) Epoch() (Number, bool) { return Number(v &^ provisional), v&provisional != 0 }

// What a client sends.
type (
	// Hello begins a session, or goes on with one on a new connection. The answer is a Welcome.
	Hello struct {
		Token uint64        // of the client's process, by chance
		At    time.Duration // by the client's clock; comes back with the Welcome
		// First is the first epoch that is not answered, and Era how many refusals the client knows.
		First  Number
		Era    Era
		News   uint64
		Leases bool // the session relies on leases: see Fetch
		Open   []ID // objects that programs of the client have open
	}
	// Fetch asks for records. The session holds the objects that they belong to from then on: it is
	// told when somebody else changes one and, if it relies on leases, before.
	Fetch struct {
		Tag   uint64
		News  uint64 // the last News that the client has got
		Wants []Want
		Cred  Cred
	}
	// Epoch is a transaction. It is carried out whole or not at all, after the session's epochs
	// before it.
	Epoch struct {
		Number Number
		Era    Era
		Acked  Number // all answers up to this one are known, and are not needed any more
		News   uint64
		// Assumes is what must be true. Versions may be provisional ones of the session's epochs.
		Assumes []Assumption
		// Blind has the parts that the steps change without having been seen, with the version that
		// the client believes them to have had.
		Blind []Assumption
		Steps []Step
	}
	// Heard says that what a Notice names is not used any more. The session holds these objects no
	// more, but for directories and what its programs have open.
	Heard struct {
		Notice uint64
		Open   []ID
	}
	// Renew asks for the lease to go on. The answer is a Renewed.
	Renew struct{ Tag uint64 }
	// Forget says that the client has dropped all that it knew of some objects.
	Forget struct{ IDs []ID }
	// Bye ends the session.
	Bye struct{}
)

// A Want is the keys of package tree from Lo up to, but not including, Hi. All belong to one
// object, and are records of one kind.
type Want struct{ Lo, Hi []byte }

// A Step is one operation of an epoch. Operations that only read are no steps: what they have seen
// is among the assumptions.
type Step struct {
	Op   Op
	Cred Cred
	Now  Time
	// Errno is what the client has predicted. If that is wrong the epoch is refused.
	Errno Errno
}

// What a server sends.
type (
	// Welcome answers a Hello.
	Welcome struct {
		Token      uint64
		At         time.Duration // that of the Hello
		Session    SessionID
		Lease      time.Duration // for how long a lease lasts, from when it was asked for
		Now        Time          // the server's clock
		Generation uint64
		// Cred is who all operations of the client are made by, unless Trusted says that it may tell
		// that itself. ReadOnly: what changes something comes to EROFS.
		Cred              Cred
		Trusted, ReadOnly bool
	}
	// Fetched answers a Fetch: what there is in the state after a transaction.
	Fetched struct {
		Tag     uint64
		Changed []Part // of what the client may know; before the facts
		News    uint64 // numbers the messages that have something in Changed
		Facts   []Fact // in the order of the wants
		Refused Errno  // the caller may not read one of them
	}
	// Answer says what became of an epoch.
	Answer struct {
		Number Number
		// Refused says that nothing was done, and why. All epochs of the same Era that follow it are
		// refused as well.
		Refused Refusal
		Era     Era     // that the session's next epochs have
		Serial  Version // of the transaction; of the state in which the assumptions were true
		// Moved has the Blind parts of which the client's belief was wrong.
		Moved []Part
		// Changed has, with a refusal, what of that which the session holds has changed.
		Changed []Part
		News    uint64
		Now     Time // the server's clock
	}
	// Notice says that somebody else changes parts. It is answered by a Heard if the session relies
	// on leases: the change waits for it.
	Notice struct {
		Notice uint64 // 0: no answer is expected
		Parts  []Part
	}
	// Renewed answers a Renew.
	Renewed struct {
		Tag uint64
		// Generation counts how often the server has lost track of what the session holds, since it
		// restarted or a lease was over. What was fetched in an earlier generation may be old.
		Generation uint64
	}
	// Unknown says that the server does not know the session: a Hello is due.
	Unknown struct{}
)

// A Refusal says why an epoch was refused; the zero Refusal is none.
type Refusal uint8

// The reasons for a Refusal.
const (
	Accepted       Refusal = iota
	WrongVersion           // something that it assumed was not true
	WrongResult            // an operation did not come to what was predicted
	FollowsRefused         // an epoch before it was refused
	WrongClock             // a time was ahead of the server's clock
	Unlawful               // no client that keeps to the protocol sends that
)

func (r Refusal) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case WrongVersion:
		return "an assumption was wrong"
	case WrongResult:
		return "a result was not as predicted"
	case FollowsRefused:
		return "follows one that was refused"
	case WrongClock:
		return "a time is ahead of the server's clock"
	case Unlawful:
		return "unlawful"
	}
	return fmt.Sprintf("refusal %d", uint8(r))
}

// A Fact is all records from Lo up to, but not including, Hi. That may be less than was wanted.
type Fact struct {
	Lo, Hi  []byte
	Records []Record
}

// A Record is a key of package tree with its value.
type Record struct{ Key, Value []byte }

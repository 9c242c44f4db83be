package bft

import (
	"crypto/sha256"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// A Message is anything that nodes of the family exchange, record, or get from and give to their
// applications.
type Message any

type (
	// SessionID names a session of a client. A later session has a higher one.
	SessionID uint64
	// Number names an operation of a session, from 1 on. A number is used once.
	Number uint64
	// View is the number of a time with one primary.
	View uint64
	// Seq is the place of a batch of requests in the order of all, from 1 on.
	Seq uint64
)

// A Request is what a client signs at once: operations with consecutive numbers.
type Request struct {
	Client  protocol.ID
	Session SessionID
	// Acked says that the client knows what became of all numbers up to here, and names none of them
	// in a condition that it did not send already. They are forgotten.
	Acked      Number
	First      Number
	Operations []Operation
}

// An Operation is a command for the service and what must be true when its turn comes.
type Operation struct {
	Command []byte
	// Members says that the command is a Change of the members, and not for the service.
	Members bool
	// After is the operation of the same session that must have been executed before, 0 for none.
	After Number
	// Conditions say what the results of earlier operations of the session must be. Each is of a
	// number that is below the operation's own.
	Conditions []Condition
}

// A Condition says what the result of an earlier operation must be.
type Condition struct {
	Number Number
	Digest Digest // of the Result
}

// Outcome is what became of an operation when its turn came.
type Outcome uint8

const (
	// Executed says that the service executed it. Its value is the service's word.
	Executed Outcome = iota + 1
	// Aborted says that a condition was false: nothing was done.
	Aborted
	// Retry says that an operation that it names was not executed, or is not known any more, so
	// that nobody can tell whether the conditions are true: nothing was done.
	Retry
	// Gone says that the session is gone, or the number too old, and nobody knows what became of
	// it.
	Gone
	// Oversized says that the result has more bytes than Limits allow, or the session has too many
	// results that it did not acknowledge: nothing was done. A client also says so of a command that
	// is too large to be sent.
	Oversized
)

func (o Outcome) String() string {
	switch o {
	case Executed:
		return "executed"
	case Aborted:
		return "aborted"
	case Retry:
		return "retry"
	case Gone:
		return "gone"
	case Oversized:
		return "oversized"
	}
	return "no outcome"
}

// A Result is what became of an operation. It is the same at all replicas.
type Result struct {
	Outcome Outcome
	Value   []byte
}

// Digest returns the digest of a result: of nothing but what it is, so that a client knows it of
// what it guesses.
func (r Result) Digest() Digest {
	h := sha256.New()
	h.Write([]byte{byte(r.Outcome)})
	h.Write(r.Value)
	return Digest(h.Sum(nil))
}

// Bounds of requests.
const (
	MaxOperations = 64
	MaxConditions = 1024 // of an operation
)

// RequestBytes is how long a signed request is at least, as bytes.
const RequestBytes = 5 + 1 + len(Key{}) + 1

// Requests is the statement of clients.
func Requests() *Statement[Request] { return NewStatement("request", requestFields) }

func requestFields(c *wirefmt.Coder, m *Request) {
	wirefmt.Uint32(c, &m.Client)
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Acked)
	wirefmt.Uint(c, &m.First)
	wirefmt.List(c, &m.Operations, 4, func(c *wirefmt.Coder, o *Operation) {
		wirefmt.Shared(c, &o.Command)
		wirefmt.Bool(c, &o.Members)
		wirefmt.Uint(c, &o.After)
		wirefmt.List(c, &o.Conditions, 2+len(Digest{}), func(c *wirefmt.Coder, x *Condition) {
			wirefmt.Uint(c, &x.Number)
			DigestFields(c, &x.Digest)
		})
	})
}

// ResultFields takes a Result.
func ResultFields(c *wirefmt.Coder, r *Result) {
	wirefmt.Enum(c, &r.Outcome, Executed, Oversized, "outcome")
	wirefmt.Bytes(c, &r.Value)
}

// Lawful reports whether a request is one that a replica may order. That is a function of the
// request and the limits alone, so all replicas agree.
func (r *Request) Lawful(l Limits) bool {
	if r.Bytes() > l.Request || r.First == 0 || r.Acked >= r.First || len(r.Operations) == 0 ||
		len(r.Operations) > MaxOperations || r.First+MaxOperations < r.First {
		return false
	}
	for i, o := range r.Operations {
		n := r.First + Number(i)
		if len(o.Command) > l.Command || len(o.Conditions) > MaxConditions || o.After >= n {
			return false
		}
		for _, c := range o.Conditions {
			if c.Number >= n {
				return false
			}
		}
	}
	return true
}

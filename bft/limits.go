package bft

import (
	"cmp"
	"fmt"
)

// Limits bound what a group takes from clients and gives them, in bytes. What becomes of a request
// depends on them, so they are the same at all members and clients. A zero field is its default.
type Limits struct {
	Command int // of an operation, or a query; 0 is 128 KiB
	// Request is what the commands and conditions of one request may have; 0 is 512 KiB.
	Request int
	// Batch is what all requests of a batch may have, and what requests of one client may have that
	// wait at a replica; 0 is 2 MiB. Log records are about as large.
	Batch int
	Value int // of a result, or an answer; 0 is 1.25 MiB
	// Session is what the results of a session may have that it has not acknowledged; those count
	// that have more than 1 KiB. 0 is 16 MiB.
	Session int
}

// MaxMessageBytes bounds each message that a node sends. What carries messages lets these pass.
const MaxMessageBytes = 4 << 20

// DefaultLimits returns the limits of a group that says nothing else.
func DefaultLimits() Limits {
	l, _ := Limits{}.WithDefaults()
	return l
}

// WithDefaults returns the limits without zero fields, or an error that names one that is wrong.
func (l Limits) WithDefaults() (Limits, error) {
	l.Command = cmp.Or(l.Command, 128<<10)
	l.Request = cmp.Or(l.Request, 512<<10)
	l.Batch = cmp.Or(l.Batch, 2<<20)
	l.Value = cmp.Or(l.Value, 5<<18)
	l.Session = cmp.Or(l.Session, 16<<20)
	for _, f := range []struct {
		name          string
		has, low, top int
	}{
		{"Command", l.Command, 1, l.Request}, {"Request", l.Request, 1, min(l.Batch, MaxMessageBytes/4)},
		{"Batch", l.Batch, 1, 4 * MaxMessageBytes}, {"Value", l.Value, 1, MaxMessageBytes / 2},
		{"Session", l.Session, l.Value, 1 << 30},
	} {
		if f.has < f.low || f.has > f.top {
			return l, fmt.Errorf("bft: Limits.%s is %d, not from %d to %d", f.name, f.has, f.low, f.top)
		}
	}
	return l, nil
}

// Bytes is what a request counts for in Limits.
func (r *Request) Bytes() (n int) {
	for i := range r.Operations {
		n += r.Operations[i].Bytes()
	}
	return n
}

// Bytes is what an operation counts for in Limits.
func (o *Operation) Bytes() int { return len(o.Command) + len(o.Conditions)*conditionBytes }

const conditionBytes = 10 + len(Digest{})

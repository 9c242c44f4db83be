package history

import (
	"time"
)

// Op is one operation on an object, with input I and output O.
type Op[I, O any] struct {
	Client  Client
	Call    time.Duration
	Return  time.Duration // meaningless if the outcome is Unknown
	Outcome Outcome
	Input   I
	Output  O // meaningless unless the outcome is Returned
}

// overlaps tells whether neither operation returned before the other was called.
func (o Op[I, O]) overlaps(other Op[I, O]) bool {
	return !o.before(other) && !other.before(o)
}

// before tells whether o returned before other was called.
func (o Op[I, O]) before(other Op[I, O]) bool {
	return o.Outcome != Unknown && o.Return < other.Call
}

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

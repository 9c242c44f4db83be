package history

import (
	"errors"
	"fmt"
	"time"
)

// Client names a sequential caller: it calls one operation after the other.
type Client int

// Outcome is what a caller knows of how its operation ended.
type Outcome uint8

const (
	// Unknown: no answer came. The operation may have taken effect, at any time after its call, or
	// not at all.
	Unknown Outcome = iota
	// Returned: it took effect between its call and its return. For a transaction: it committed.
	Returned
	// Failed: it certainly took no effect, and never will. For a transaction: it aborted.
	Failed
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Unknown:
		return "unknown"
	case Returned:
		return "returned"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Verdict is a checker's answer.
type Verdict uint8

const (
	// Undecided: the time limit came first. It is not a pass: check a smaller history, or more keys
	// with fewer clients each.
	Undecided Verdict = iota
	// OK: the history is as the specification allows.
	OK
	// Violation: no correct system gives this history.
	Violation
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Undecided:
		return "undecided"
	case OK:
		return "ok"
	case Violation:
		return "violation"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

var (
	errOutcome = errors.New("no such outcome")
	errTwice   = errors.New("ended twice")
)

// checkTimes returns an error unless the times and the outcome of an operation make sense.
func checkTimes(call, ret time.Duration, outcome Outcome) error {
	switch {
	case outcome > Failed:
		return fmt.Errorf("%w: %d", errOutcome, outcome)
	case outcome != Unknown && ret < call:
		return fmt.Errorf("returns at %v, before its call at %v", ret, call)
	}
	return nil
}

// span formats an operation's interval.
func span(call, ret time.Duration, outcome Outcome) string {
	if outcome == Unknown {
		return fmt.Sprintf("%v..?", call)
	}
	return fmt.Sprintf("%v..%v", call, ret)
}

// Op is one operation on an object, with input I and output O.
type Op[I, O any] struct {
	Client  Client
	Call    time.Duration
	Return  time.Duration // meaningless if the outcome is Unknown
	Outcome Outcome
	Input   I
	Output  O // meaningless unless the outcome is Returned
}

package plan

import "github.com/foresay/foresay/smr"

// A Moment is how far a command of a client has come.
type Moment uint8

const (
	// Durable and Executed are what smr.AckDurable and smr.AckExecuted acknowledge.
	Durable Moment = iota + 1
	Executed
	// First is the first reply to an ordered command, on which a client goes on if it guesses, and
	// Confirmed is that nothing can change the reply any more. Read is the same for a query that goes
	// around the order.
	First
	Confirmed
	Read
)

// maxMoments is how many a system has at most.
const maxMoments = 3

func (m Moment) String() string {
	switch m {
	case Durable:
		return "durable"
	case Executed:
		return "executed"
	case First:
		return "first"
	case Confirmed:
		return "confirmed"
	case Read:
		return "read"
	}
	return "no moment"
}

// Until returns the moment of an acknowledgement, which is AckDurable or AckExecuted.
func Until(ack smr.Ack) Moment {
	if ack == smr.AckExecuted {
		return Executed
	}
	return Durable
}

// Moments returns those of which there are figures for a system.
func (s System) Moments() []Moment {
	if s.Byzantine() {
		return []Moment{First, Confirmed, Read}
	}
	return []Moment{Durable, Executed}
}

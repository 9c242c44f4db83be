package service

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Equal tells whether all members of the group have answered, are ready, know the same leader if there is to be one, and have applied all that is committed.
func Equal(statuses []Status) bool {
	newest := newestOf(statuses)
	return agree(statuses, func(s Status) bool { return s.Applied == newest.Applied && s.Committed == newest.Applied })
}

// A Catchup tells when the members of a group have caught up. While clients write all the time they may never be Equal. The zero value is ready for use.
type Catchup struct {
	begun bool
	goal  smr.Slot // what was committed when it began
}

// Over tells whether the replicas are Equal, or as Equal has it but have applied more or less beyond what was committed at the first call that had an answer.
func (c *Catchup) Over(statuses []Status) bool {
	for _, s := range statuses {
		if !c.begun && s.Role != Unreachable {
			c.goal = max(c.goal, s.Committed)
		}
	}
	c.begun = c.begun || newestOf(statuses) != nil
	return Equal(statuses) || agree(statuses, func(s Status) bool { return s.Applied >= c.goal })
}

// newestOf returns the status of a replica that has applied most, nil if none has answered.
func newestOf(statuses []Status) *Status {
	var newest *Status
	for i := range statuses {
		if s := &statuses[i]; s.Role != Unreachable && (newest == nil || s.Applied > newest.Applied) {
			newest = s
		}
	}
	return newest
}

// agree tells whether all members are ready, know the same leader, and have applied enough.
func agree(statuses []Status, enough func(Status) bool) bool {
	newest := newestOf(statuses)
	if newest == nil {
		return false
	}
	agreed := map[protocol.ID]bool{}
	for _, s := range statuses {
		if s.Role != Unreachable && s.Ready && s.Leader == newest.Leader && enough(s) {
			agreed[s.Replica] = true
		}
	}
	for _, m := range newest.Members {
		if !agreed[m.ID] {
			return false
		}
	}
	return true
}

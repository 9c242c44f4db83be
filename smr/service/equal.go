package service

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Equal reports whether all members of each group have answered, are ready, know the same leader if
// there is to be one, and have applied all that is committed.
func Equal(statuses []Status) bool {
	groups := ByGroup(statuses)
	return len(groups) > 0 && !slices.ContainsFunc(groups, func(g []Status) bool { return !equal(g) })
}

func equal(statuses []Status) bool {
	newest := newestOf(statuses)
	return agree(statuses, func(s Status) bool { return s.Applied == newest.Applied && s.Committed == newest.Applied })
}

// A Catchup tells when the members of all groups have caught up. While clients write all the time
// they may never be Equal. The zero value is ready for use.
type Catchup struct {
	groups map[int]*catchup
}

// catchup is that of one group.
type catchup struct {
	begun bool
	goal  smr.Slot // what was committed when it began
}

// Over reports whether the replicas are Equal, or as Equal has it but have applied more or less
// beyond what was committed at the first call that had an answer.
func (c *Catchup) Over(statuses []Status) bool {
	if c.groups == nil {
		c.groups = map[int]*catchup{}
	}
	over := len(statuses) > 0
	for _, g := range ByGroup(statuses) {
		id := g[0].Group
		if c.groups[id] == nil {
			c.groups[id] = &catchup{}
		}
		over = c.groups[id].over(g) && over
	}
	return over
}

func (c *catchup) over(statuses []Status) bool {
	for _, s := range statuses {
		if !c.begun && s.Role != Unreachable {
			c.goal = max(c.goal, s.Committed)
		}
	}
	c.begun = c.begun || newestOf(statuses) != nil
	return equal(statuses) || agree(statuses, func(s Status) bool { return s.Applied >= c.goal })
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

// agree reports whether all members are ready, know the same leader, and have applied enough.
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

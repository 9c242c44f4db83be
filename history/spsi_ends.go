package history

import (
	"cmp"
	"fmt"
	"slices"
)

// dependencyKind is what an execution depends on another one by.
type dependencyKind string

const (
	dataDependency  dependencyKind = "read from"
	stackDependency dependencyKind = "wrote over"
	flowDependency  dependencyKind = "followed"
)

// checkDependencies checks the ends of executions against those that they depended on. Of flow,
// those which sessions show are for checkSessions.
func (c *speculationChecker) checkDependencies() {
	for i := range c.executions {
		x, dependent := &c.executions[i], int32(i)
		for j := range x.reads {
			r := &x.reads[j]
			if r.state != LocalCommitted {
				continue
			}
			c.checkDependency(dependent, r.writer, dataDependency)
			if !slices.Contains(x.data, r.writer) {
				c.breach(SettledDependencies, "%s, and does not know that it depends on it", c.readText(dependent, r))
			}
		}
		for _, d := range x.data {
			c.checkDependency(dependent, d, dataDependency)
		}
		for _, d := range x.stack {
			c.checkDependency(dependent, d, stackDependency)
		}
		for _, d := range x.flow {
			c.checkDependency(dependent, d, flowDependency)
		}
	}
}

func (c *speculationChecker) checkDependency(dependent, on int32, kind dependencyKind) {
	x, d := &c.executions[dependent], &c.executions[on]
	same := x.node == d.node
	if kind == flowDependency && same && d.aborted != 0 && d.aborted < x.begin {
		return // it had ended, so nothing depends on it
	}
	lost := d.aborted // when the dependent must abort
	if d.isFinal() && kind != flowDependency && d.final.Timestamp > x.snapshot {
		lost = d.final.Event
	}
	explain := func(rule SpeculationRule, what string) {
		c.breach(rule, "%s %s %s, and %s", c.text(dependent), kind, c.text(on), what)
	}
	if x.isFinal() {
		switch {
		case !d.isFinal():
			explain(SettledDependencies, "became final")
		case lost != 0:
			explain(SettledDependencies, "became final with RS below that FC")
		case same && d.final.Event > x.final.Event:
			explain(SettledDependencies, "became final first")
		}
	}
	if lost == 0 || !same {
		return
	}
	if last := x.last(); last > lost {
		explain(CascadingAbort, fmt.Sprintf("went on, to event %d", last))
	} else if x.isOpen() {
		explain(CascadingAbort, "did not abort")
	}
}

// sessionAt is a session at a node.
type sessionAt struct {
	session Client
	node    int32
}

// checkSessions goes through each session's executions at each node, in order.
func (c *speculationChecker) checkSessions() {
	var order []sessionAt
	sessions := make(map[sessionAt][]int32)
	for i := range c.executions {
		at := sessionAt{c.executions[i].session, c.executions[i].node}
		if _, ok := sessions[at]; !ok {
			order = append(order, at)
		}
		sessions[at] = append(sessions[at], int32(i))
	}
	for _, at := range order {
		executions := sessions[at]
		slices.SortFunc(executions, func(a, b int32) int {
			return cmp.Compare(c.executions[a].begin, c.executions[b].begin)
		})
		c.checkTold(executions)
		c.checkFlow(executions)
	}
}

// checkTold checks snapshots of a session's executions against what it was told before.
func (c *speculationChecker) checkTold(executions []int32) {
	type told struct {
		Commit
		of int32
	}
	var all []told
	for _, i := range executions {
		for _, commit := range []Commit{c.executions[i].local, c.executions[i].final} {
			if commit.Told != 0 {
				all = append(all, told{commit, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return cmp.Compare(a.Told, b.Told) })
	next, latest := 0, -1
	for _, i := range executions {
		x := &c.executions[i]
		for ; next < len(all) && all[next].Told < x.begin; next++ {
			if latest < 0 || all[next].Timestamp > all[latest].Timestamp {
				latest = next
			}
		}
		if latest >= 0 && all[latest].Timestamp > x.snapshot {
			c.breach(SessionOrder, "session %d was told at event %d of %s, and began %s at event %d below %d", x.session,
				all[latest].Told, c.text(all[latest].of), c.text(i), x.begin, all[latest].Timestamp)
		}
	}
}

// checkFlow checks the dependencies of a session's executions on earlier ones of whose local commit
// it had been told, and which had not ended.
func (c *speculationChecker) checkFlow(executions []int32) {
	var pending []int32 // begun before, and not ended
	for _, i := range executions {
		x := &c.executions[i]
		pending = slices.DeleteFunc(pending, func(p int32) bool {
			end := c.executions[p].end()
			return end != 0 && end < x.begin
		})
		for _, p := range pending {
			if told := c.executions[p].local.Told; told != 0 && told < x.begin {
				c.checkDependency(i, p, flowDependency)
			}
		}
		pending = append(pending, i)
	}
}

// checkCommits checks the timestamps of commits, and that final executions do not conflict.
func (c *speculationChecker) checkCommits() {
	for i := range c.executions {
		x := &c.executions[i]
		least := x.snapshot
		if len(x.writes) > 0 {
			least++
		}
		if x.local.Event != 0 {
			if x.local.Timestamp < least {
				c.breach(TimestampOrder, "%s: LC must be at least %d", c.text(int32(i)), least)
			}
			least = max(least, x.local.Timestamp)
		}
		if x.isFinal() && x.final.Timestamp < least {
			c.breach(TimestampOrder, "%s: FC must be at least %d", c.text(int32(i)), least)
		}
	}
	for key, finals := range c.finals {
		// One that is concurrent to any that committed before is so to the last of these.
		for i := 1; i < len(finals); i++ {
			if a, b := finals[i-1], finals[i]; c.executions[b].snapshot < c.executions[a].final.Timestamp &&
				c.executions[a].snapshot < c.executions[b].final.Timestamp {
				c.breach(FirstCommitterWins, "%s and %s are concurrent, final, and wrote %q", c.text(a), c.text(b), c.keys[key])
			}
		}
	}
}

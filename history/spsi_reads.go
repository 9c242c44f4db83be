package history

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// localVersions are the versions at one node whose writers have local-committed and not ended, as
// of one event.
type localVersions struct {
	// writers are in the order of their local commits, by key.
	writers [][]int32
	exposed []bool // by execution: is it among them
}

// checkReads goes through the events of each node, and checks each read by itself.
func (c *speculationChecker) checkReads() {
	local := localVersions{writers: make([][]int32, len(c.keys)), exposed: make([]bool, len(c.executions))}
	for _, events := range c.events {
		for _, e := range events {
			switch e.what {
			case began:
			case localCommitted:
				local.expose(e.execution, &c.executions[e.execution])
			case finalCommitted, aborted:
				local.retire(e.execution, &c.executions[e.execution])
			default:
				c.checkRead(e.execution, &c.executions[e.execution].reads[e.what], &local)
			}
		}
		for _, e := range events {
			local.retire(e.execution, &c.executions[e.execution])
		}
	}
}

func (l *localVersions) expose(writer int32, x *execution) {
	l.exposed[writer] = true
	for _, key := range x.writes {
		l.writers[key] = append(l.writers[key], writer)
	}
}

func (l *localVersions) retire(writer int32, x *execution) {
	if !l.exposed[writer] {
		return
	}
	l.exposed[writer] = false
	for _, key := range x.writes {
		writers := l.writers[key]
		i := slices.Index(writers, writer)
		l.writers[key] = slices.Delete(writers, i, i+1)
	}
}

func (c *speculationChecker) checkRead(reader int32, r *snapshotRead, local *localVersions) {
	x := &c.executions[reader]
	if !r.held && r.olc < r.ffc {
		c.breach(BoundedSnapshot, "%s, with OLC %d below FFC %d", c.readText(reader, r), r.olc, r.ffc)
	}
	if r.writer == nobody {
		c.checkLatest(reader, r, math.MinInt64, local)
		return
	}
	w := &c.executions[r.writer]
	if w.node != x.node && (r.state == LocalCommitted || !w.isFinal()) {
		c.breach(LocalSpeculation, "%s, which was another node's and not final: %s", c.readText(reader, r), c.text(r.writer))
		return
	}
	state, timestamp := FinalCommitted, w.final.Timestamp
	switch {
	case local.exposed[r.writer]:
		state, timestamp = LocalCommitted, w.local.Timestamp
	case !w.isFinal() || w.node == x.node && w.final.Event > r.event:
		c.breach(Visibility, "%s, which was not committed then: %s", c.readText(reader, r), c.text(r.writer))
		return
	}
	switch {
	case !w.wrote(r.key):
		c.breach(Visibility, "%s, which did not write it", c.readText(reader, r))
	case r.state != state || r.timestamp != timestamp:
		c.breach(Visibility, "%s, which had %s then: %s", c.readText(reader, r), commitText(state, timestamp),
			c.text(r.writer))
	case timestamp > x.snapshot:
		c.breach(Visibility, "%s, above its snapshot", c.readText(reader, r))
	default:
		c.checkLatest(reader, r, timestamp, local)
	}
}

// checkLatest checks that no version in a read's snapshot is later than what it returned.
func (c *speculationChecker) checkLatest(reader int32, r *snapshotRead, returned Timestamp, local *localVersions) {
	snapshot := c.executions[reader].snapshot
	lost := r.state == LocalCommitted && !c.executions[r.writer].isFinal()
	latest, timestamp, state := nobody, returned, LocalCommitted
	for _, w := range local.writers[r.key] {
		x := &c.executions[w]
		if x.bound != 0 && snapshot > x.bound || x.hidden != 0 && x.hidden <= r.event {
			continue
		}
		if lc := x.local.Timestamp; lc <= snapshot && lc > timestamp {
			latest, timestamp = w, lc
		}
	}
	finals := c.finals[r.key]
	above := sort.Search(len(finals), func(i int) bool {
		return c.executions[finals[i]].final.Timestamp > snapshot
	})
	for _, w := range slices.Backward(finals[:above]) {
		if local.exposed[w] || w == reader {
			continue // it counts by its local commit; and nobody reads from itself
		}
		if lost && c.executions[w].node != c.executions[reader].node {
			continue
		}
		if fc := c.executions[w].final.Timestamp; fc > timestamp {
			latest, timestamp, state = w, fc, FinalCommitted
		}
		break
	}
	if latest != nobody {
		c.breach(Visibility, "%s, but the latest version in its snapshot has %s, from %s", c.readText(reader, r),
			commitText(state, timestamp), c.text(latest))
	}
}

// text describes an execution.
func (c *speculationChecker) text(execution int32) string {
	x := &c.executions[execution]
	text := fmt.Sprintf("%s (%s: RS %d", c.name(execution), c.nodes[x.node], x.snapshot)
	if x.local.Event != 0 {
		text += fmt.Sprintf(", LC %d at event %d", x.local.Timestamp, x.local.Event)
	}
	switch {
	case x.isFinal():
		text += fmt.Sprintf(", FC %d at event %d", x.final.Timestamp, x.final.Event)
	case x.aborted != 0:
		text += fmt.Sprintf(", aborted at event %d", x.aborted)
	}
	return text + ")"
}

// readText describes a read.
func (c *speculationChecker) readText(reader int32, r *snapshotRead) string {
	x := &c.executions[reader]
	return fmt.Sprintf("%s (%s: RS %d) read %s", c.name(reader), c.nodes[x.node], x.snapshot, c.seenText(r))
}

// seenText describes what was read.
func (c *speculationChecker) seenText(r *snapshotRead) string {
	text := fmt.Sprintf("%q at event %d", c.keys[r.key], r.event)
	if r.writer == nobody {
		return text + " as unwritten"
	}
	return text + fmt.Sprintf(" from %s with %s", c.name(r.writer), commitText(r.state, r.timestamp))
}

// commitText describes a version's timestamp.
func commitText(state VersionState, timestamp Timestamp) string {
	if state == LocalCommitted {
		return fmt.Sprintf("LC %d", timestamp)
	}
	return fmt.Sprintf("FC %d", timestamp)
}

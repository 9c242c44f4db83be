package history

import (
	"cmp"
	"fmt"
	"math"
)

// checkAtomicity checks that no execution read one version of another's and, of another key that
// the latter wrote, an older one.
func (c *speculationChecker) checkAtomicity() {
	// The reads of a key by the execution in hand are a list: lastRead has its last one, and before
	// has the one before each, less one.
	lastRead := make([]int32, len(c.keys))
	reader := make([]int32, len(c.keys)) // whose the last read is, counted from 1
	var before []int32
	for i := range c.executions {
		x := &c.executions[i]
		before = before[:0]
		for j, r := range x.reads {
			previous := nobody
			if reader[r.key] == int32(i)+1 {
				previous = lastRead[r.key]
			}
			before = append(before, previous)
			reader[r.key], lastRead[r.key] = int32(i)+1, int32(j)
		}
		for j := range x.reads {
			seen := &x.reads[j]
			if seen.held || seen.writer == nobody {
				continue
			}
			for _, key := range c.executions[seen.writer].writes {
				if reader[key] != int32(i)+1 {
					continue
				}
				for k := lastRead[key]; k != nobody; k = before[k] {
					if old := &x.reads[k]; !old.held && old.writer != seen.writer &&
						(old.writer == nobody || old.timestamp < seen.timestamp) {
						c.breach(AtomicSnapshot, "%s, and %s, though %s wrote it too", c.readText(int32(i), seen), c.seenText(old),
							c.name(seen.writer))
					}
				}
			}
		}
	}
}

// reach is a summary of what is in an execution's snapshot, the execution itself included.
type reach struct {
	newest Timestamp // the latest commit
	oldest Timestamp // the oldest RS of those that are not final
	known  bool
}

// snapshots looks for conflicts within snapshots. Two final executions do not conflict, or break
// another rule. So of each pair one is not final, and it begins no earlier than the oldest such one
// of the snapshot; whatever led only to commits before that need not be looked at. Executions that
// read from each other break another rule, and their summaries are in part.
type snapshots struct {
	*speculationChecker
	reaches []reach // by execution
	members []int32 // of the snapshot in hand
	through []int32 // by execution, in members: which execution of the snapshot read from it
	in      []int32 // by execution: in whose snapshot it was found, counted from 1
}

func (c *speculationChecker) checkSnapshots() {
	n := len(c.executions)
	s := snapshots{speculationChecker: c, reaches: make([]reach, n), through: make([]int32, n), in: make([]int32, n)}
	for i := range c.executions {
		s.summarise(int32(i))
	}
	for i := range c.executions {
		s.check(int32(i))
	}
}

// summarise makes the summaries of an execution and of all in its snapshot.
func (s *snapshots) summarise(i int32) {
	x, r := &s.executions[i], &s.reaches[i]
	if r.known {
		return
	}
	*r = reach{newest: math.MinInt64, oldest: math.MaxInt64, known: true}
	switch {
	case x.isFinal():
		r.newest = x.final.Timestamp
	case x.local.Event != 0:
		r.newest, r.oldest = x.local.Timestamp, x.snapshot
	}
	for j := range x.reads {
		if w := x.reads[j].writer; w != nobody && !x.reads[j].held {
			s.summarise(w)
			r.newest, r.oldest = max(r.newest, s.reaches[w].newest), min(r.oldest, s.reaches[w].oldest)
		}
	}
}

// check looks for a conflict in an execution's snapshot.
func (s *snapshots) check(reader int32) {
	x := &s.executions[reader]
	oldest := Timestamp(math.MaxInt64)
	var now Event // of the last read
	for j := range x.reads {
		if r := &x.reads[j]; !r.held {
			now = r.event
			if r.writer != nobody {
				oldest = min(oldest, s.reaches[r.writer].oldest)
			}
		}
	}
	if oldest == math.MaxInt64 {
		return
	}
	s.members = s.members[:0]
	s.gather(reader, reader, oldest)
	for i, a := range s.members {
		for _, b := range s.members[:i] {
			if s.executions[a].isFinal() && s.executions[b].isFinal() {
				continue
			}
			if s.executions[a].snapshot >= s.endOf(b, x.node, now) || s.executions[b].snapshot >= s.endOf(a, x.node, now) {
				continue
			}
			if key := common(s.executions[a].writes, s.executions[b].writes); key != nobody {
				s.breach(ConflictFreeSnapshot, "%s (%s: RS %d) had at event %d two concurrent writers of %q in its snapshot: "+
					"%s, and %s", s.name(reader), s.nodes[x.node], x.snapshot, now, s.keys[key], s.path(b, reader),
					s.path(a, reader))
				return
			}
		}
	}
}

// gather adds what is in the snapshot of x, as part of the reader's, to the members.
func (s *snapshots) gather(x, reader int32, oldest Timestamp) {
	for j := range s.executions[x].reads {
		r := &s.executions[x].reads[j]
		if r.held || r.writer == nobody || s.in[r.writer] == reader+1 || s.reaches[r.writer].newest <= oldest {
			continue
		}
		s.in[r.writer], s.through[r.writer] = reader+1, x
		s.members = append(s.members, r.writer)
		s.gather(r.writer, reader, oldest)
	}
}

// endOf returns the commit that ends an execution's time as of an event at a node.
func (s *snapshots) endOf(i, node int32, now Event) Timestamp {
	x := &s.executions[i]
	if x.isFinal() && (x.node != node || x.final.Event < now) {
		return x.final.Timestamp
	}
	return x.local.Timestamp
}

// path describes a member of a reader's snapshot, and how it came there.
func (s *snapshots) path(member, reader int32) string {
	text := s.text(member)
	for via := s.through[member]; via != reader; via = s.through[via] {
		text += fmt.Sprintf(" by way of %s", s.name(via))
	}
	return text
}

// common returns a key that is in both of two ascending lists, or nobody.
func common(a, b []int32) int32 {
	for len(a) > 0 && len(b) > 0 {
		switch cmp.Compare(a[0], b[0]) {
		case 0:
			return a[0]
		case -1:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return nobody
}

package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/protocol"
)

// explainedEvents bounds the events to come that Explain shows.
const explainedEvents = 30

// Explain writes how the simulation stands, for people: the failure if there is one, what happened
// last, each node with its clock, disk, timers and state, the links that are cut, and what is to
// come. The state of a node is its String, if it is a fmt.Stringer, else its fields.
func (s *Sim[M]) Explain(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, step %d, at %v, hash %016x\n", s.config.Seed, s.steps, s.now, s.Hash())
	if f := s.failure; f != nil {
		fmt.Fprintf(&b, "failed: %s: %v\n", f.Kind, f.Err)
		if f.Node != 0 {
			fmt.Fprintf(&b, "at node %d in step %d\n", f.Node, f.Step)
		}
		if f.Replay != "" {
			fmt.Fprintf(&b, "replay: %s\n", f.Replay)
		}
	}
	b.WriteString("\nwhat happened last:\n")
	s.trace.kept(func(l *line[M]) bool {
		fmt.Fprintf(&b, "  %v\n", l)
		return true
	})
	b.WriteString("\nnodes:\n")
	for _, n := range s.nodes {
		s.explainNode(&b, n)
	}
	s.explainLinks(&b)
	s.explainQueue(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Sim[M]) explainNode(b *strings.Builder, n *node[M]) {
	fmt.Fprintf(b, "  node %d", n.id)
	if name := s.net.names[n.site]; name != "" {
		fmt.Fprintf(b, " at %s", name)
	}
	switch {
	case n.diskLost && n.node == nil:
		b.WriteString(", gone with its disk")
	case n.node == nil:
		b.WriteString(", down")
	case n.paused:
		fmt.Fprintf(b, ", stands still until %v, %d events wait", n.until, len(n.backlog))
	}
	if line := n.processor.line; len(line) > 0 {
		fmt.Fprintf(b, ", at work for another %v, %d calls wait", n.remains(s.now), len(line)-1)
	}
	fmt.Fprintf(b, ": clock %v, ", n.clock.at(s.now))
	if n.log.kept > 0 {
		fmt.Fprintf(b, "records %d to %d", n.log.first(), n.log.next-1)
	} else {
		b.WriteString("no records")
	}
	if len(n.pending) > 0 {
		fmt.Fprintf(b, ", %d writes and %d messages wait for the disk", len(n.pending), len(n.waiting)-n.first)
	}
	b.WriteByte('\n')
	if timers := s.setTimers(n); len(timers) > 0 {
		fmt.Fprintf(b, "    timers: %s\n", strings.Join(timers, ", "))
	}
	if n.node != nil {
		fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(strings.TrimRight(stateOf(n.node), "\n"), "\n", "\n    "))
	}
}

// setTimers returns a node's timers with how long they still take, the next one first.
func (s *Sim[M]) setTimers(n *node[M]) []string {
	type named struct {
		due  time.Duration
		name string
	}
	var timers []named
	for name, t := range n.timers {
		if t.set {
			timers = append(timers, named{t.due, describe(name)})
		}
	}
	slices.SortFunc(timers, func(a, b named) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.name, b.name)) })
	var texts []string
	for _, t := range timers {
		texts = append(texts, fmt.Sprintf("%s in %v", t.name, t.due-s.now))
	}
	return texts
}

// stateOf returns a node's text. A node that panicked may do so again.
func stateOf(node any) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("(its String panics: %v)", r)
		}
	}()
	if s, ok := node.(fmt.Stringer); ok {
		return s.String()
	}
	const limit = 4000
	text = fmt.Sprintf("%+v", node)
	return text[:min(limit, len(text))]
}

func (s *Sim[M]) explainLinks(b *strings.Builder) {
	var lines []string
	for _, from := range s.nodes {
		for _, to := range s.nodes {
			if l := s.link(from, to); l.cuts > 0 {
				lines = append(lines, fmt.Sprintf("  %d to %d is cut\n", from.id, to.id))
			} else if l.gap {
				lines = append(lines, fmt.Sprintf("  %d to %d has lost something\n", from.id, to.id))
			}
		}
	}
	for _, row := range s.net.sites {
		for _, r := range row {
			if r.link != r.base {
				lines = append(lines, fmt.Sprintf("  %v is %+v\n", r.path, r.link))
			}
		}
	}
	if len(lines) > 0 {
		b.WriteString("\nlinks:\n" + strings.Join(lines, ""))
	}
}

func (s *Sim[M]) explainQueue(b *strings.Builder) {
	to := slices.Clone(s.queue.heap)
	slices.SortFunc(to, func(a, b due) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	fmt.Fprintf(b, "\nto come, %d events:\n", len(to))
	for _, d := range to[:min(explainedEvents, len(to))] {
		e := &s.queue.events[d.event]
		l := line[M]{at: d.at, what: action(e.kind), peer: e.from, n: e.n, timer: e.timer, msg: e.msg}
		if e.node >= 0 {
			l.node = s.nodes[e.node].id
		}
		fmt.Fprintf(b, "  %s\n", strings.Replace(l.String(), " #0", "", 1))
	}
}

// Disk returns what is on a node's disk and in its memory for it: its records and its key space,
// which must not be changed. Tests look at them; nodes get theirs by Start and Env.
func (s *Sim[M]) Disk(id protocol.ID) (log []protocol.Record[M], keys protocol.Keys, err error) {
	n := s.lookup(id)
	if n == nil {
		return nil, nil, fmt.Errorf("sim: there is no node %d", id)
	}
	if log, err = s.records(n); err != nil {
		return nil, nil, fmt.Errorf("sim: node %d: %w", id, err)
	}
	return log, &n.keys, nil
}

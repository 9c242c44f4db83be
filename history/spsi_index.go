package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// nobody is the writer of a key's initial version.
const nobody int32 = -1

// speculationChecker is a history of executions by index: their names and those of keys and nodes
// are for explanations.
type speculationChecker struct {
	executions []execution
	keys       []string
	nodes      []string
	name       func(execution int32) string
	events     [][]nodeEvent // of each node, in order
	finals     [][]int32     // of each key, the final executions that wrote it, by FC
	broken     map[SpeculationRule]string
}

// execution is an Execution by index.
type execution struct {
	node              int32
	session           Client
	begin             Event
	snapshot          Timestamp
	reads             []snapshotRead
	writes            []int32 // ascending, each once
	local, final      Commit
	aborted           Event
	bound             Timestamp
	hidden            Event
	data, stack, flow []int32
}

type snapshotRead struct {
	event     Event
	key       int32
	writer    int32
	state     VersionState
	timestamp Timestamp
	olc, ffc  Timestamp
	held      bool
}

// nodeEvent is an event of an execution: a read if it is not negative.
type nodeEvent struct {
	at        Event
	execution int32
	what      int32
}

const (
	began int32 = -1 - iota
	localCommitted
	finalCommitted
	aborted
)

func (x *execution) isFinal() bool { return x.final.Event != 0 }
func (x *execution) isOpen() bool  { return !x.isFinal() && x.aborted == 0 }

// last returns the last event of an execution before its end.
func (x *execution) last() Event {
	last := max(x.begin, x.local.Event)
	if n := len(x.reads); n > 0 {
		last = max(last, x.reads[n-1].event)
	}
	return last
}

// end returns the event that ended an execution, or 0.
func (x *execution) end() Event { return max(x.final.Event, x.aborted) }

// wrote reports whether an execution wrote a key.
func (x *execution) wrote(key int32) bool {
	_, ok := slices.BinarySearch(x.writes, key)
	return ok
}

// speculationIndex makes a speculationChecker.
type speculationIndex[ID comparable] struct {
	speculationChecker
	executionOf map[ID]int32
	keyOf       map[string]int32
	nodeOf      map[string]int32
}

func indexSpeculation[ID comparable](h Speculation[ID]) (*speculationChecker, error) {
	n := len(h.Executions)
	c := &speculationIndex[ID]{
		speculationChecker: speculationChecker{
			executions: make([]execution, 0, n), broken: make(map[SpeculationRule]string),
			name: func(x int32) string { return fmt.Sprint(h.Executions[x].ID) },
		},
		executionOf: make(map[ID]int32, n), keyOf: make(map[string]int32), nodeOf: make(map[string]int32),
	}
	for i := range h.Executions {
		id := h.Executions[i].ID
		if _, ok := c.executionOf[id]; ok {
			return nil, fmt.Errorf("execution %v: there are two of this name", id)
		}
		c.executionOf[id] = int32(i)
	}
	for i := range h.Executions {
		if err := c.add(&h.Executions[i]); err != nil {
			return nil, fmt.Errorf("execution %v: %w", h.Executions[i].ID, err)
		}
	}
	if err := c.sortEvents(); err != nil {
		return nil, err
	}
	c.finals = make([][]int32, len(c.keys))
	for i := range c.executions {
		if x := &c.executions[i]; x.isFinal() {
			for _, key := range x.writes {
				c.finals[key] = append(c.finals[key], int32(i))
			}
		}
	}
	for _, finals := range c.finals {
		slices.SortStableFunc(finals, func(a, b int32) int {
			return cmp.Compare(c.executions[a].final.Timestamp, c.executions[b].final.Timestamp)
		})
	}
	return &c.speculationChecker, nil
}

func (c *speculationIndex[ID]) key(name string) int32 { return number(c.keyOf, &c.keys, name) }

// number returns the number of a name, which is the next if it is new.
func number(numbers map[string]int32, names *[]string, name string) int32 {
	n, ok := numbers[name]
	if !ok {
		n = int32(len(*names))
		numbers[name] = n
		*names = append(*names, name)
	}
	return n
}

// add adds an execution.
func (c *speculationIndex[ID]) add(e *Execution[ID]) error {
	x := execution{
		node: number(c.nodeOf, &c.nodes, e.Node), session: e.Session, begin: e.Begin, snapshot: e.Snapshot,
		reads: make([]snapshotRead, 0, len(e.Reads)), writes: make([]int32, 0, len(e.Writes)),
		local: e.Local, final: e.Final, aborted: e.Aborted, bound: e.Bound, hidden: e.Hidden,
	}
	self := int32(len(c.executions))
	for _, r := range e.Reads {
		read := snapshotRead{
			event: r.Event, key: c.key(r.Key), writer: nobody, state: r.State, timestamp: r.Timestamp, olc: r.OLC,
			ffc: r.FFC, held: r.Held,
		}
		if r.State > FinalCommitted {
			return fmt.Errorf("reads %q, which is %v", r.Key, r.State)
		}
		if r.State != Unwritten {
			writer, err := c.other(self, r.Writer)
			if err != nil {
				return fmt.Errorf("reads %q of %v: %w", r.Key, r.Writer, err)
			}
			read.writer = writer
		}
		x.reads = append(x.reads, read)
	}
	for _, name := range e.Writes {
		x.writes = append(x.writes, c.key(name))
	}
	slices.Sort(x.writes)
	x.writes = slices.Compact(x.writes)
	for _, list := range []struct {
		from []ID
		to   *[]int32
	}{{e.Data, &x.data}, {e.Stack, &x.stack}, {e.Flow, &x.flow}} {
		for _, id := range list.from {
			dependency, err := c.other(self, id)
			if err != nil {
				return fmt.Errorf("depends on %v: %w", id, err)
			}
			*list.to = append(*list.to, dependency)
		}
	}
	c.executions = append(c.executions, x)
	return x.checkEvents()
}

// other returns the number of an execution's name, which another one gives.
func (c *speculationIndex[ID]) other(self int32, id ID) (int32, error) {
	x, ok := c.executionOf[id]
	switch {
	case !ok:
		return 0, errors.New("no such execution")
	case x == self:
		return 0, errors.New("that is itself")
	}
	return x, nil
}

// checkEvents returns an error unless an execution's own events are in order.
func (x *execution) checkEvents() error {
	last := x.begin
	if last == 0 {
		return errors.New("it never began")
	}
	for _, r := range x.reads {
		if r.event <= last {
			return fmt.Errorf("its read at event %d comes after event %d", r.event, last)
		}
		last = r.event
	}
	for _, commit := range []Commit{x.local, x.final} {
		switch {
		case commit.Event == 0 && commit != Commit{}:
			return errors.New("it has a commit without an event")
		case commit.Event == 0:
			continue
		case commit.Event <= last:
			return fmt.Errorf("its commit at event %d comes after event %d", commit.Event, last)
		case commit.Told != 0 && commit.Told < commit.Event:
			return fmt.Errorf("its session was told at event %d of its commit at event %d", commit.Told, commit.Event)
		}
		last = commit.Event
	}
	switch {
	case x.aborted == 0:
	case x.isFinal():
		return errTwice
	case x.aborted <= last:
		return fmt.Errorf("its abort at event %d comes after event %d", x.aborted, last)
	}
	return nil
}

// sortEvents puts each node's events in order.
func (c *speculationIndex[ID]) sortEvents() error {
	c.events = make([][]nodeEvent, len(c.nodes))
	for i := range c.executions {
		x := &c.executions[i]
		add := func(at Event, what int32) {
			if at != 0 {
				c.events[x.node] = append(c.events[x.node], nodeEvent{at, int32(i), what})
			}
		}
		add(x.begin, began)
		for r := range x.reads {
			add(x.reads[r].event, int32(r))
		}
		add(x.local.Event, localCommitted)
		add(x.final.Event, finalCommitted)
		add(x.aborted, aborted)
	}
	for node, events := range c.events {
		slices.SortFunc(events, func(a, b nodeEvent) int { return cmp.Compare(a.at, b.at) })
		for i := 1; i < len(events); i++ {
			if a, b := events[i-1], events[i]; a.at == b.at {
				return fmt.Errorf("node %s: event %d is one of %s and one of %s", c.nodes[node], a.at,
					c.name(min(a.execution, b.execution)), c.name(max(a.execution, b.execution)))
			}
		}
	}
	return nil
}

func (c *speculationChecker) breach(rule SpeculationRule, format string, args ...any) {
	if _, ok := c.broken[rule]; !ok {
		c.broken[rule] = fmt.Sprintf(format, args...)
	}
}

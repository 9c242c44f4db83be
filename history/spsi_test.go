package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type spsiEdit func(x *Execution[string])

// ex returns an execution, by default the only one of its session.
func ex(id, node string, begin Event, snapshot Timestamp, edits ...spsiEdit) Execution[string] {
	x := Execution[string]{ID: id, Node: node, Session: Client(begin), Begin: begin, Snapshot: snapshot}
	for _, edit := range edits {
		edit(&x)
	}
	return x
}

func reads(key string, at Event, state VersionState, writer string, timestamp Timestamp) spsiEdit {
	return func(x *Execution[string]) {
		x.Reads = append(x.Reads, SnapshotRead[string]{Key: key, Event: at, State: state, Writer: writer,
			Timestamp: timestamp})
		if state == LocalCommitted {
			x.Data = append(x.Data, writer)
		}
	}
}

func unwritten(key string, at Event) spsiEdit { return reads(key, at, Unwritten, "", 0) }

// bounds sets OLC and FFC of the last read.
func bounds(olc, ffc Timestamp) spsiEdit {
	return func(x *Execution[string]) {
		r := &x.Reads[len(x.Reads)-1]
		r.OLC, r.FFC = olc, ffc
	}
}

// held makes the last read one that was not handed to the user.
func held(x *Execution[string]) { x.Reads[len(x.Reads)-1].Held = true }

func writes(keys ...string) spsiEdit {
	return func(x *Execution[string]) { x.Writes = keys }
}

func local(at Event, lc Timestamp) spsiEdit {
	return func(x *Execution[string]) { x.Local = Commit{Event: at, Timestamp: lc} }
}

func final(at Event, fc Timestamp) spsiEdit {
	return func(x *Execution[string]) { x.Final = Commit{Event: at, Timestamp: fc} }
}

func hidden(at Event) spsiEdit { return func(x *Execution[string]) { x.Hidden = at } }

func bound(snapshot Timestamp) spsiEdit { return func(x *Execution[string]) { x.Bound = snapshot } }

func abortedAt(at Event) spsiEdit {
	return func(x *Execution[string]) { x.Aborted = at }
}

func over(id string) spsiEdit {
	return func(x *Execution[string]) { x.Stack = append(x.Stack, id) }
}

func after(id string) spsiEdit {
	return func(x *Execution[string]) { x.Flow = append(x.Flow, id) }
}

func inSession(session Client) spsiEdit {
	return func(x *Execution[string]) { x.Session = session }
}

// told tells the session of the commits that precede it among the edits.
func told(x *Execution[string]) { x.Local.Told, x.Final.Told = x.Local.Event, x.Final.Event }

// unaware takes away what the execution knows of its data dependencies.
func unaware(x *Execution[string]) { x.Data = nil }

// expectSpeculation checks what a history is blamed for.
func expectSpeculation(t *testing.T, want []SpeculationBreach, executions ...Execution[string]) {
	t.Helper()
	report, err := CheckSpeculation(Speculation[string]{executions})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, report.Breaches); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
	if got := report.Verdict(); (got == OK) != (want == nil) || got == Undecided {
		t.Errorf("the verdict is %v", got)
	}
}

func TestSpeculation(t *testing.T) {
	for _, test := range []struct {
		name string
		h    []Execution[string]
	}{
		{"nothing", nil},
		{"a chain that becomes final", []Execution[string]{
			ex("A", "n", 1, 5, writes("a", "b"), local(2, 6), final(7, 9)),
			ex("B", "n", 3, 10, reads("a", 4, LocalCommitted, "A", 6), writes("a"), local(5, 11), final(8, 11)),
			ex("C", "m", 1, 12, reads("b", 2, FinalCommitted, "A", 9), reads("a", 3, FinalCommitted, "B", 11), final(4, 12)),
		}},
		{"a chain that aborts", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(8)),
			ex("B", "n", 3, 10, reads("a", 4, LocalCommitted, "A", 6), writes("b"), local(5, 11), abortedAt(9)),
			ex("C", "n", 6, 11, reads("b", 7, LocalCommitted, "B", 11), abortedAt(10)),
		}},
		{"a reader that aborts because what it read becomes final above its snapshot", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6), final(5, 9)),
			ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), abortedAt(6)),
			ex("C", "n", 7, 8, unwritten("a", 8)),
		}},
		{"a version that nobody may read any more", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(3)),
			ex("B", "n", 4, 7, unwritten("a", 5)),
		}},
		{"another node's local commit", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6)),
			ex("B", "m", 3, 7, unwritten("a", 4)),
		}},
		{"a local commit after the read", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(4, 6)),
			ex("B", "n", 2, 7, unwritten("a", 3)),
		}},
		{"a local and a final commit at one time", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 7), abortedAt(7)),
			ex("B", "m", 1, 5, writes("a"), local(2, 7), final(3, 7)),
			ex("C", "n", 3, 8, reads("a", 4, LocalCommitted, "A", 7), abortedAt(8)),
			ex("D", "n", 5, 8, reads("a", 6, FinalCommitted, "B", 7)),
		}},
		{"a store without local commits", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), final(2, 6)),
			ex("B", "n", 3, 6, reads("a", 4, FinalCommitted, "A", 6), writes("a"), final(5, 7)),
		}},
		{"a read that is held until its execution aborts", []Execution[string]{
			ex("A", "n", 1, 5, writes("a", "remote"), local(2, 6), abortedAt(6)),
			ex("B", "m", 1, 5, writes("b", "remote"), local(2, 6), final(3, 8)),
			ex("C", "n", 3, 10, reads("a", 4, LocalCommitted, "A", 6), bounds(5, 0),
				reads("b", 5, FinalCommitted, "B", 8), bounds(5, 8), held, abortedAt(7)),
		}},
		{"a conflict that shows only after the last read", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6), final(8, 9)),
			ex("B", "n", 3, 7, writes("a", "b"), over("A"), local(4, 8), abortedAt(9)),
			ex("C", "n", 5, 10, reads("b", 6, LocalCommitted, "B", 8), abortedAt(10)),
			ex("D", "n", 11, 8, unwritten("b", 12)),
		}},
		{"a conflict that shows only at a held read", []Execution[string]{
			ex("A", "n", 1, 5, writes("a", "c"), local(2, 6), final(8, 9)),
			ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), writes("a", "b"), over("A"), local(5, 8), abortedAt(10)),
			ex("C", "n", 6, 10, reads("b", 7, LocalCommitted, "B", 8), reads("c", 9, FinalCommitted, "A", 9), held,
				abortedAt(11)),
		}},
		{"another node has not heard of an abort", []Execution[string]{
			ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(3)),
			ex("B", "m", 1, 7, after("A"), unwritten("a", 9)),
		}},
		{"a session that retries", []Execution[string]{
			ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 6), told, abortedAt(3)),
			ex("A again", "n", 4, 7, inSession(1), after("A"), writes("a"), local(5, 8), told, final(6, 8), told),
			ex("B", "n", 7, 8, inSession(1), reads("a", 8, FinalCommitted, "A again", 8)),
		}},
		{"a session that gave up", []Execution[string]{
			ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 9), abortedAt(5)),
			ex("B", "n", 3, 5, inSession(1), writes("b"), local(4, 6), final(6, 6)),
		}},
	} {
		t.Run(test.name, func(t *testing.T) { expectSpeculation(t, nil, test.h...) })
	}
}

func TestSpeculationBadInput(t *testing.T) {
	for _, test := range []struct {
		want string
		h    []Execution[string]
	}{
		{"history: execution A: there are two of this name", []Execution[string]{ex("A", "n", 1, 5), ex("A", "m", 1, 5)}},
		{"history: execution A: it never began", []Execution[string]{ex("A", "n", 0, 5)}},
		{
			`history: execution A: reads "a" of B: no such execution`,
			[]Execution[string]{ex("A", "n", 1, 5, reads("a", 2, FinalCommitted, "B", 3))},
		},
		{
			`history: execution A: reads "a" of A: that is itself`,
			[]Execution[string]{ex("A", "n", 1, 5, reads("a", 2, FinalCommitted, "A", 3))},
		},
		{
			`history: execution A: reads "a", which is VersionState(3)`,
			[]Execution[string]{ex("A", "n", 1, 5, reads("a", 2, 3, "", 3))},
		},
		{"history: execution A: depends on B: no such execution", []Execution[string]{ex("A", "n", 1, 5, over("B"))}},
		{
			"history: execution A: its read at event 2 comes after event 2",
			[]Execution[string]{ex("A", "n", 1, 5, unwritten("a", 2), unwritten("b", 2))},
		},
		{
			"history: execution A: its commit at event 3 comes after event 3",
			[]Execution[string]{ex("A", "n", 1, 5, local(3, 6), final(3, 6))},
		},
		{
			"history: execution A: its abort at event 3 comes after event 3",
			[]Execution[string]{ex("A", "n", 1, 5, local(3, 6), abortedAt(3))},
		},
		{"history: execution A: ended twice", []Execution[string]{ex("A", "n", 1, 5, final(2, 6), abortedAt(3))}},
		{"history: execution A: it has a commit without an event", []Execution[string]{ex("A", "n", 1, 5, local(0, 6))}},
		{
			"history: execution A: its session was told at event 2 of its commit at event 3",
			[]Execution[string]{ex("A", "n", 1, 5, local(3, 6), func(x *Execution[string]) { x.Local.Told = 2 })},
		},
		{
			"history: node n: event 2 is one of A and one of B",
			[]Execution[string]{ex("A", "n", 1, 5, unwritten("a", 2)), ex("B", "n", 2, 5)},
		},
	} {
		if _, err := CheckSpeculation(Speculation[string]{test.h}); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

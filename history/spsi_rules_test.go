package history

import (
	"testing"
)

// spsiCase is a history, and what it breaks.
type spsiCase struct {
	name string
	want []SpeculationBreach
	h    []Execution[string]
}

func expectAll(t *testing.T, cases []spsiCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) { expectSpeculation(t, test.want, test.h...) })
	}
}

// TestSpeculationReads breaks rules about reads one by one.
func TestSpeculationReads(t *testing.T) {
	expectAll(t, []spsiCase{
		{
			"missed what was final", []SpeculationBreach{
				{Visibility, `C (m: RS 8) read "a" at event 2 from A with FC 6, but the latest version in its ` +
					"snapshot has FC 8, from B (n: RS 6, FC 8 at event 4)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), final(2, 6)),
				ex("B", "n", 3, 6, writes("a"), final(4, 8)),
				ex("C", "m", 1, 8, reads("a", 2, FinalCommitted, "A", 6)),
			},
		},
		{
			"missed what becomes final later", []SpeculationBreach{
				{Visibility, `B (n: RS 8) read "a" at event 3 as unwritten, but the latest version in its snapshot ` +
					"has FC 8, from A (n: RS 5, LC 8 at event 4, FC 8 at event 5)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(4, 8), final(5, 8)),
				ex("B", "n", 2, 8, unwritten("a", 3)),
			},
		},
		{
			"missed a local commit", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 4 as unwritten, but the latest version in its snapshot ` +
					"has LC 6, from A (n: RS 5, LC 6 at event 2)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 6, unwritten("a", 4)),
			},
		},
		{
			"missed a local commit in a held read", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 4 as unwritten, but the latest version in its snapshot ` +
					"has LC 6, from A (n: RS 5, LC 6 at event 2)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 6, unwritten("a", 4), held),
			},
		},
		{
			"missed the later of two local commits", []SpeculationBreach{
				{Visibility, `C (n: RS 9) read "a" at event 6 from A with LC 6, but the latest version in its ` +
					"snapshot has LC 7, from B (n: RS 6, LC 7 at event 4)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 6, writes("a"), local(4, 7)),
				ex("C", "n", 5, 9, reads("a", 6, LocalCommitted, "A", 6)),
			},
		},
		{
			"missed what has overtaken a version that is lost", nil, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(5)),
				ex("B", "m", 1, 6, writes("a"), final(2, 7)),
				ex("C", "n", 3, 9, reads("a", 4, LocalCommitted, "A", 6), abortedAt(6)),
			},
		},
		{
			"missed what has overtaken a version that is not", []SpeculationBreach{
				{Visibility, `C (n: RS 9) read "a" at event 4 from A with LC 6, but the latest version in its ` +
					"snapshot has FC 7, from B (m: RS 6, FC 7 at event 2)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(5, 6)),
				ex("B", "m", 1, 6, writes("a"), final(2, 7)),
				ex("C", "n", 3, 9, reads("a", 4, LocalCommitted, "A", 6), abortedAt(6)),
			},
		},
		{
			"missed what is hidden, or bound", nil, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), hidden(4), final(8, 9)),
				ex("B", "n", 3, 7, unwritten("a", 5)),
				ex("C", "m", 1, 5, writes("b"), local(2, 6), bound(7), final(5, 9)),
				ex("D", "m", 3, 8, unwritten("b", 4)),
			},
		},
		{
			"missed what is hidden later, and bound above", []SpeculationBreach{
				{Visibility, `B (n: RS 7) read "a" at event 4 as unwritten, but the latest version in its snapshot ` +
					"has LC 6, from A (n: RS 5, LC 6 at event 2)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), hidden(5), bound(7)),
				ex("B", "n", 3, 7, unwritten("a", 4)),
			},
		},
		{
			"above the snapshot", []SpeculationBreach{
				{Visibility, `B (n: RS 5) read "a" at event 4 from A with LC 6, above its snapshot`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 5, reads("a", 4, LocalCommitted, "A", 6)),
			},
		},
		{
			"local-committed below the snapshot, and final above it", []SpeculationBreach{
				{Visibility, `B (n: RS 7) read "a" at event 5 from A with FC 9, above its snapshot`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(3, 9)),
				ex("B", "n", 4, 7, reads("a", 5, FinalCommitted, "A", 9)),
			},
		},
		{
			"not committed", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 3 from A with FC 5, which was not committed then: A (n: ` +
					"RS 5)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a")),
				ex("B", "n", 2, 6, reads("a", 3, FinalCommitted, "A", 5)),
			},
		},
		{
			"not committed yet", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 3 from A with FC 6, which was not committed then: A (n: ` +
					"RS 5, FC 6 at event 4)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), final(4, 6)),
				ex("B", "n", 2, 6, reads("a", 3, FinalCommitted, "A", 6)),
			},
		},
		{
			"not written", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 4 from A with FC 6, which did not write it`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("b"), final(2, 6)),
				ex("B", "n", 3, 6, reads("a", 4, FinalCommitted, "A", 6)),
			},
		},
		{
			"local-committed at one partition and final at another", []SpeculationBreach{
				{Visibility, `B (n: RS 6) read "a" at event 5 from A with LC 6, which had FC 6 then: A (n: RS 5, LC ` +
					"6 at event 2, FC 6 at event 3)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(3, 6)),
				ex("B", "n", 4, 6, reads("a", 5, LocalCommitted, "A", 6)),
			},
		},
		{
			"another timestamp", []SpeculationBreach{
				{Visibility, `B (m: RS 7) read "a" at event 5 from A with FC 6, which had FC 7 then: A (n: RS 5, LC ` +
					"6 at event 2, FC 7 at event 3)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(3, 7)),
				ex("B", "m", 4, 7, reads("a", 5, FinalCommitted, "A", 6)),
			},
		},
		{
			"another node's, taken for final", []SpeculationBreach{
				{LocalSpeculation, `B (m: RS 7) read "a" at event 2 from A with FC 6, which was another node's and ` +
					"not final: A (n: RS 5, LC 6 at event 2, aborted at event 3)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(3)),
				ex("B", "m", 1, 7, reads("a", 2, FinalCommitted, "A", 6)),
			},
		},
		{
			"OLC below FFC", []SpeculationBreach{
				{BoundedSnapshot, `B (n: RS 7) read "a" at event 4 from A with FC 6, with OLC 5 below FFC 6`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), final(2, 6)),
				ex("B", "n", 3, 7, reads("a", 4, FinalCommitted, "A", 6), bounds(5, 6)),
			},
		},
	})
}

// TestSpeculationSnapshots breaks rules about what an execution read, taken together.
func TestSpeculationSnapshots(t *testing.T) {
	expectAll(t, []spsiCase{
		{
			"half of an execution whose local commit is gone", []SpeculationBreach{
				{AtomicSnapshot, `B (n: RS 7) read "a" at event 4 from A with LC 6, and "b" at event 6 as unwritten, ` +
					"though A wrote it too"},
				{CascadingAbort, "B (n: RS 7, aborted at event 7) read from A (n: RS 5, LC 6 at event 2, aborted at " +
					"event 5), and went on, to event 6"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a", "b"), local(2, 6), abortedAt(5)),
				ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), unwritten("b", 6), abortedAt(7)),
			},
		},
		{
			"two versions of a key", []SpeculationBreach{
				{AtomicSnapshot, `B (n: RS 7) read "a" at event 5 from A with LC 6, and "a" at event 3 as unwritten, ` +
					"though A wrote it too"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(4, 6)),
				ex("B", "n", 2, 7, unwritten("a", 3), reads("a", 5, LocalCommitted, "A", 6)),
			},
		},
		{
			"a conflict that has become one", []SpeculationBreach{
				{ConflictFreeSnapshot, `C (n: RS 10) had at event 8 two concurrent writers of "a" in its snapshot: B ` +
					"(n: RS 7, LC 8 at event 4, aborted at event 10), and A (n: RS 5, LC 6 at event 2, FC 9 at event 7)"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a", "c"), local(2, 6), final(7, 9)),
				ex("B", "n", 3, 7, writes("a", "b"), local(4, 8), abortedAt(10)),
				ex("C", "n", 5, 10, reads("b", 6, LocalCommitted, "B", 8), reads("c", 8, FinalCommitted, "A", 9), abortedAt(11)),
			},
		},
	})
}

// TestSpeculationDependencies breaks rules about the ends of those that depend on others.
func TestSpeculationDependencies(t *testing.T) {
	expectAll(t, []spsiCase{
		{
			"final on an aborted one", []SpeculationBreach{
				{SettledDependencies, "B (n: RS 6, LC 6 at event 5, FC 6 at event 7) read from A (n: RS 5, LC 6 at " +
					"event 2, aborted at event 6), and became final"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(6)),
				ex("B", "n", 3, 6, reads("a", 4, LocalCommitted, "A", 6), local(5, 6), final(7, 6)),
			},
		},
		{
			"final on an open one that it only wrote over", []SpeculationBreach{
				{SettledDependencies, "B (n: RS 6, LC 7 at event 4, FC 7 at event 5) wrote over A (n: RS 5, LC 6 at " +
					"event 2), and became final"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 6, writes("a"), over("A"), local(4, 7), final(5, 7)),
			},
		},
		{
			"final on another node's open one", []SpeculationBreach{
				{SettledDependencies, "B (m: RS 6, LC 7 at event 4, FC 7 at event 5) followed A (n: RS 5, LC 6 at " +
					"event 2), and became final"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "m", 3, 6, writes("b"), after("A"), local(4, 7), final(5, 7)),
			},
		},
		{
			"final on another node's aborted one", []SpeculationBreach{
				{SettledDependencies, "B (m: RS 6, LC 7 at event 6, FC 7 at event 7) followed A (n: RS 5, LC 6 at event 2, " +
					"aborted at event 3), and became final"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(3)),
				ex("B", "m", 5, 6, writes("b"), after("A"), local(6, 7), final(7, 7)),
			},
		},
		{
			"final before what its session had done", []SpeculationBreach{
				{SettledDependencies, "B (n: RS 6, LC 7 at event 4, FC 7 at event 5) followed A (n: RS 5, LC 6 at " +
					"event 2, FC 7 at event 6), and became final first"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 6), told, final(6, 7), told),
				ex("B", "n", 3, 6, inSession(1), writes("b"), local(4, 7), final(5, 7)),
			},
		},
		{
			"final on what became final above its snapshot", []SpeculationBreach{
				{SettledDependencies, "B (n: RS 7, LC 7 at event 5, FC 7 at event 7) read from A (n: RS 5, LC 6 at " +
					"event 2, FC 8 at event 6), and became final with RS below that FC"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(6, 8)),
				ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), local(5, 7), final(7, 7)),
			},
		},
		{
			"a dependency not known", []SpeculationBreach{
				{SettledDependencies, `B (n: RS 7) read "a" at event 4 from A with LC 6, and does not know that it ` +
					"depends on it"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6)),
				ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), unaware),
			},
		},
		{
			"did not abort", []SpeculationBreach{
				{CascadingAbort, "B (n: RS 7) read from A (n: RS 5, LC 6 at event 2, aborted at event 5), and did " +
					"not abort"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(5)),
				ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6)),
			},
		},
		{
			"did not abort for the version of a held read", []SpeculationBreach{
				{CascadingAbort, "B (n: RS 7) read from A (n: RS 5, LC 6 at event 2, aborted at event 5), and did " +
					"not abort"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), abortedAt(5)),
				ex("B", "n", 3, 7, reads("a", 4, LocalCommitted, "A", 6), held),
			},
		},
		{
			"local-committed before it aborted", []SpeculationBreach{
				{CascadingAbort, "B (n: RS 7, LC 8 at event 6, aborted at event 7) read from A (n: RS 5, LC 6 at " +
					"event 2, FC 8 at event 5), and went on, to event 6"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(5, 8)),
				ex("B", "n", 3, 7, writes("b"), reads("a", 4, LocalCommitted, "A", 6), local(6, 8), abortedAt(7)),
			},
		},
		{
			"did not abort though it wrote over what became final above its snapshot", []SpeculationBreach{
				{CascadingAbort, "B (n: RS 7, LC 8 at event 4) wrote over A (n: RS 5, LC 6 at event 2, FC 8 at event " +
					"5), and did not abort"},
			},
			[]Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 6), final(5, 8)),
				ex("B", "n", 3, 7, writes("a"), over("A"), local(4, 8)),
			},
		},
		{
			"read on after what its session had done was aborted", []SpeculationBreach{
				{CascadingAbort, "B (n: RS 7, aborted at event 6) followed A (n: RS 5, LC 6 at event 2, aborted at " +
					"event 4), and went on, to event 5"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 6), told, abortedAt(4)),
				ex("B", "n", 3, 7, inSession(1), unwritten("a", 5), abortedAt(6)),
			},
		},
	})
}

// TestSpeculationCommits breaks rules about commits and what sessions are told of them.
func TestSpeculationCommits(t *testing.T) {
	expectAll(t, []spsiCase{
		{
			"LC is RS", []SpeculationBreach{
				{TimestampOrder, "A (n: RS 5, LC 5 at event 2): LC must be at least 6"},
			}, []Execution[string]{ex("A", "n", 1, 5, writes("a"), local(2, 5))},
		},
		{
			"FC is RS", []SpeculationBreach{
				{TimestampOrder, "A (n: RS 5, FC 5 at event 2): FC must be at least 6"},
			}, []Execution[string]{ex("A", "n", 1, 5, writes("a"), final(2, 5))},
		},
		{
			"FC is below LC", []SpeculationBreach{
				{TimestampOrder, "A (n: RS 5, LC 7 at event 2, FC 6 at event 3): FC must be at least 7"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), local(2, 7), final(3, 6)),
			},
		},
		{
			"a read-only one commits below RS", []SpeculationBreach{
				{TimestampOrder, "A (n: RS 5, LC 4 at event 2): LC must be at least 5"},
			}, []Execution[string]{ex("A", "n", 1, 5, local(2, 4))},
		},
		{
			"concurrent and final", []SpeculationBreach{
				{FirstCommitterWins, "A (n: RS 5, FC 7 at event 2) and B (m: RS 6, FC 8 at event 2) are concurrent, " +
					`final, and wrote "b"`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a", "b"), final(2, 7)),
				ex("B", "m", 1, 6, writes("b", "c"), final(2, 8)),
			},
		},
		{
			"final at one time", []SpeculationBreach{
				{FirstCommitterWins, "A (n: RS 5, FC 7 at event 2) and B (m: RS 6, FC 7 at event 2) are concurrent, " +
					`final, and wrote "a"`},
			}, []Execution[string]{
				ex("A", "n", 1, 5, writes("a"), final(2, 7)),
				ex("B", "m", 1, 6, writes("a"), final(2, 7)),
			},
		},
		{
			"a snapshot below a local commit that the session was told of", []SpeculationBreach{
				{SessionOrder, "session 1 was told at event 2 of A (n: RS 5, LC 7 at event 2), and began B (n: RS 6) " +
					"at event 3 below 7"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 7), told),
				ex("B", "n", 3, 6, inSession(1)),
			},
		},
		{
			"a snapshot below a final commit that the session was told of", []SpeculationBreach{
				{SessionOrder, "session 1 was told at event 3 of A (n: RS 5, LC 6 at event 2, FC 9 at event 3), and " +
					"began C (n: RS 8) at event 6 below 9"},
			}, []Execution[string]{
				ex("A", "n", 1, 5, inSession(1), writes("a"), local(2, 6), final(3, 9), told),
				ex("B", "n", 4, 9, inSession(1), local(5, 9), told),
				ex("C", "n", 6, 8, inSession(1)),
			},
		},
	})
}

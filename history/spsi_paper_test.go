package history

import (
	"testing"
)

// The figures of the paper, and what its protocol lets happen.

// TestFigure1aIsNotAtomic: T2 reads C, but not B, from T1 of another node, which is not final.
func TestFigure1aIsNotAtomic(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{AtomicSnapshot, `T2 (N3: RS 8) read "C" at event 2 from T1 with LC 6, and "B" at event 3 as unwritten, ` +
			"though T1 wrote it too"},
		{LocalSpeculation, `T2 (N3: RS 8) read "C" at event 2 from T1 with LC 6, which was another node's and ` +
			"not final: T1 (N1: RS 5, LC 6 at event 2, FC 9 at event 3)"},
	},
		ex("T1", "N1", 1, 5, writes("B", "C"), local(2, 6), final(3, 9)),
		ex("T2", "N3", 1, 8, reads("C", 2, LocalCommitted, "T1", 6), unwritten("B", 3), abortedAt(4)),
	)
}

// TestFigure1bIsNotIsolated: T3 reads what T1 and T2 of other nodes wrote, of which one must abort.
func TestFigure1bIsNotIsolated(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{ConflictFreeSnapshot, `T3 (N3: RS 8) had at event 3 two concurrent writers of "B" in its snapshot: T1 ` +
			"(N1: RS 5, LC 6 at event 2, FC 9 at event 3), and T2 (N2: RS 5, LC 6 at event 2, aborted at event 3)"},
		{LocalSpeculation, `T3 (N3: RS 8) read "A" at event 2 from T1 with LC 6, which was another node's and ` +
			"not final: T1 (N1: RS 5, LC 6 at event 2, FC 9 at event 3)"},
	},
		ex("T1", "N1", 1, 5, writes("A", "B"), local(2, 6), final(3, 9)),
		ex("T2", "N2", 1, 5, writes("B", "C"), local(2, 6), abortedAt(3)),
		ex("T3", "N3", 1, 8, reads("A", 2, LocalCommitted, "T1", 6), reads("C", 3, LocalCommitted, "T2", 6), abortedAt(4)),
	)
}

// TestFigure2IsAnIndirectConflict: T4 reads from T1, which is not final, and from T3, which read
// from T2, with which T1 conflicts.
func TestFigure2IsAnIndirectConflict(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{ConflictFreeSnapshot, `T4 (N1: RS 10) had at event 5 two concurrent writers of "X" in its snapshot: T1 ` +
			"(N1: RS 5, LC 6 at event 2, aborted at event 6), and T2 (N2: RS 5, LC 6 at event 2, FC 7 at event 3) by " +
			"way of T3"},
	},
		ex("T1", "N1", 1, 5, writes("A", "X"), local(2, 6), abortedAt(6)),
		ex("T2", "N2", 1, 5, writes("X"), local(2, 6), final(3, 7)),
		ex("T3", "N2", 4, 8, reads("X", 5, FinalCommitted, "T2", 7), writes("B"), local(6, 9), final(7, 9)),
		ex("T4", "N1", 3, 10, reads("A", 4, LocalCommitted, "T1", 6), reads("B", 5, FinalCommitted, "T3", 9), abortedAt(7)),
	)
}

// TestFigure2Blocked: the same with the read that is blocked, as STR does it.
func TestFigure2Blocked(t *testing.T) {
	expectSpeculation(t, nil,
		ex("T1", "N1", 1, 5, writes("A", "X"), local(2, 6), abortedAt(6)),
		ex("T2", "N2", 1, 5, writes("X"), local(2, 6), final(3, 7)),
		ex("T3", "N2", 4, 8, reads("X", 5, FinalCommitted, "T2", 7), writes("B"), local(6, 9), final(7, 9)),
		ex("T4", "N1", 3, 10, reads("A", 4, LocalCommitted, "T1", 6), bounds(5, 0),
			reads("B", 5, FinalCommitted, "T3", 9), bounds(5, 9), held, abortedAt(7)),
	)
}

// TestFreshestFinalCommitOfDirectDependentsIsNotEnough: when Tx becomes final, only Tr learns of it
// (Algorithm 1, line 46), and T1 is certified without it because the cache has forgotten the remote
// key. T0, which read from Tr before, then reads from T1 with OLC 5 and FFC 0.
func TestFreshestFinalCommitOfDirectDependentsIsNotEnough(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{ConflictFreeSnapshot, `T0 (n: RS 20) had at event 11 two concurrent writers of "remote" in its ` +
			"snapshot: Tx (n: RS 5, LC 6 at event 2, FC 9 at event 9) by way of Tr, and T1 (n: RS 7, LC 8 at event " +
			"10, aborted at event 13)"},
	},
		ex("Tx", "n", 1, 5, writes("remote", "a"), local(2, 6), final(9, 9)),
		ex("Tr", "n", 3, 10, reads("a", 4, LocalCommitted, "Tx", 6), bounds(5, 0), writes("b"), local(5, 11), final(12, 11)),
		ex("T0", "n", 6, 20, reads("b", 7, LocalCommitted, "Tr", 11), bounds(5, 0),
			reads("m", 11, LocalCommitted, "T1", 8), bounds(5, 0), abortedAt(14)),
		ex("T1", "n", 8, 7, writes("remote", "m"), local(10, 8), abortedAt(13)),
	)
}

// TestCacheMissLeavesNoReader: T2 misses the cache, which therefore lets T1 local-commit the key
// below T2's snapshot (Algorithm 1, line 8).
func TestCacheMissLeavesNoReader(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{AtomicSnapshot, `T2 (n: RS 20) read "m" at event 5 from T1 with LC 7, and "remote" at event 3 as ` +
			"unwritten, though T1 wrote it too"},
	},
		ex("T1", "n", 1, 6, writes("remote", "m"), local(4, 7)),
		ex("T2", "n", 2, 20, unwritten("remote", 3), reads("m", 5, LocalCommitted, "T1", 7)),
	)
}

// TestCacheHitLeavesNoReader: T2 reads a remote key in the cache, so that no replica knows it as a
// reader. W became final in time, and another node, whose clock is behind, then overwrites the key
// below T2's snapshot.
func TestCacheHitLeavesNoReader(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{Visibility, `T2 (n: RS 20) read "remote" at event 4 from W with LC 6, but the latest version in its ` +
			"snapshot has FC 16, from late (m: RS 15, LC 16 at event 3, FC 16 at event 4)"},
	},
		ex("W", "n", 1, 5, writes("remote"), local(2, 6), final(5, 7)),
		ex("T2", "n", 3, 20, reads("remote", 4, LocalCommitted, "W", 6), final(6, 20)),
		ex("late", "m", 1, 15, reads("remote", 2, FinalCommitted, "W", 7), writes("remote"), local(3, 16), final(4, 16)),
	)
}

// TestStackedWriterOutlivesItsSnapshot: B wrote over A's version without reading it, so it is in
// nobody's list of data dependencies when A becomes final above B's snapshot.
func TestStackedWriterOutlivesItsSnapshot(t *testing.T) {
	expectSpeculation(t, []SpeculationBreach{
		{FirstCommitterWins, "A (n: RS 5, LC 6 at event 2, FC 9 at event 5) and B (n: RS 7, LC 8 at event 4, FC " +
			`10 at event 6) are concurrent, final, and wrote "a"`},
	},
		ex("A", "n", 1, 5, writes("a"), local(2, 6), final(5, 9)),
		ex("B", "n", 3, 7, writes("a"), local(4, 8), final(6, 10)),
	)
}

package history

import (
	"fmt"
	"slices"
	"testing"
)

// TestRandomStore checks that no history of a correct store is blamed, at its level and below.
func TestRandomStore(t *testing.T) {
	for seed := range uint64(30) {
		for _, lists := range []bool{false, true} {
			for _, store := range []Level{StrongSnapshotIsolation, StrictSerializable} {
				c := storeConfig{seed: seed, txns: 300, clients: 8, keys: 12, level: store, lists: lists, unknown: 0.1}
				h := simulate(c)
				for level := ReadCommitted; level <= store; level++ {
					if store == StrongSnapshotIsolation && level.cycles() > store.cycles() {
						continue
					}
					report, err := CheckTransactions(h, level)
					if err != nil {
						t.Fatalf("%+v: %v", c, err)
					}
					if report.Verdict() != OK {
						t.Fatalf("%+v: %v", c, report)
					}
				}
			}
		}
	}
}

// TestRandomStoreWithBug checks that each bug of a store is found with each seed, under a name that
// fits.
func TestRandomStoreWithBug(t *testing.T) {
	for _, test := range []struct {
		name  string
		bug   storeBug
		store Level
		level Level
		lists []bool
		want  []string // one of them must be found
		never []string // none of them may be
	}{
		{
			"dirty read", dirtyRead, StrictSerializable, ReadCommitted, []bool{false, true},
			[]string{"G1a", "G1b", "G1c"}, []string{"lost-write", "internal"},
		},
		{
			"stale read", staleRead, StrictSerializable, StrictSerializable, []bool{false, true},
			[]string{"G-single-session", "G-single-realtime"},
			[]string{"G0", "G1a", "G1b", "G1c", "G-single", "G2-item", "lost-update", "internal", "lost-write"},
		},
		{
			"lost update", lostUpdate, StrictSerializable, SnapshotIsolation, []bool{false, true},
			[]string{"lost-update"}, []string{"G1a", "G1b", "G0", "G1c", "internal", "lost-write"},
		},
		{
			"write skew", noBug, StrongSnapshotIsolation, Serializable, []bool{false, true},
			[]string{"G2-item"}, []string{"G1a", "G1b", "G0", "G1c", "G-single", "G-nonadjacent", "lost-update"},
		},
		{
			"non-atomic commit", nonAtomic, StrictSerializable, SnapshotIsolation, []bool{false, true},
			[]string{"G-single"}, []string{"G1a", "G1b", "internal", "lost-write"},
		},
		{
			"half a commit", halfCommit, StrictSerializable, ReadCommitted, []bool{false},
			[]string{"lost-write"}, []string{"G1a", "G1b", "G0", "internal"},
		},
		{
			"half a commit of lists", halfCommit, StrictSerializable, StrictSerializable, []bool{true},
			[]string{"G-single", "G-single-realtime"}, []string{"G1a", "G1b", "internal"},
		},
		{
			"aborted writes stay", dirtyAbort, StrictSerializable, ReadCommitted, []bool{false, true},
			[]string{"dirty-update"}, []string{"lost-write", "internal", "duplicate"},
		},
		{
			"done twice", retriedList, StrictSerializable, ReadCommitted, []bool{true},
			[]string{"duplicate"}, []string{"G1a", "internal", "garbage-read"},
		},
		{
			"reordered versions", reordered, StrictSerializable, StrictSerializable, []bool{false},
			[]string{"G0", "G0-session", "G0-realtime"}, []string{"G1a", "G1b", "internal", "lost-write"},
		},
	} {
		for _, lists := range test.lists {
			t.Run(fmt.Sprintf("%s/lists=%v", test.name, lists), func(t *testing.T) {
				for seed := range uint64(20) {
					h := simulate(storeConfig{seed: seed, txns: 300, clients: 8, keys: 12, level: test.store, lists: lists,
						bug: test.bug})
					report, err := CheckTransactions(h, test.level)
					if err != nil {
						t.Fatal(err)
					}
					in := func(names []string) bool {
						return slices.ContainsFunc(report.Names(), func(name string) bool { return slices.Contains(names, name) })
					}
					if !in(test.want) || in(test.never) {
						t.Fatalf("seed %d: want one of %q and none of %q\n%v", seed, test.want, test.never, report)
					}
				}
			})
		}
	}
}

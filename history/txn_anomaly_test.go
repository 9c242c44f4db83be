package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnomalies plants each anomaly, and checks a clean neighbour: the same history but for one
// word.
func TestAnomalies(t *testing.T) {
	for _, test := range anomalies() {
		t.Run(test.name, func(t *testing.T) {
			report := checkText(t, test.planted, test.level)
			if got := report.Names(); !cmp.Equal(got, test.want) {
				t.Errorf("planted: found %q, want %q\n%v", got, test.want, report)
			}
			if got := report.Verdict(); got != Violation {
				t.Errorf("planted: the verdict is %v", got)
			}
			if test.allowed != 0 {
				if report := checkText(t, test.planted, test.allowed); report.Verdict() != OK {
					t.Errorf("the level %v should allow it: %v", test.allowed, report)
				}
			}
			if report := checkText(t, test.clean, test.level); report.Verdict() != OK {
				t.Errorf("clean neighbour: %v", report)
			}
		})
	}
}

func checkText(t *testing.T, text string, level Level) Report {
	t.Helper()
	h, err := ParseTransactions("test", []byte("history transactions\n"+strings.ReplaceAll(text, ";", "\n")))
	if err != nil {
		t.Fatal(err)
	}
	report, err := CheckTransactions(h, level)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

type anomalyTest struct {
	name           string
	level          Level
	allowed        Level // a level that allows it, if any
	want           []string
	planted, clean string
}

func anomalies() []anomalyTest {
	return slices.Concat(versionAnomalies(), cycleAnomalies(), subtleAnomalies(), orderAnomalies(), listAnomalies())
}

func versionAnomalies() []anomalyTest {
	return []anomalyTest{
		{
			name: "garbage read", level: ReadCommitted, want: []string{"garbage-read"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed read "x" "b"`,
			clean:   `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed read "x" "a"`,
		},
		{
			name: "garbage in the order", level: ReadCommitted, want: []string{"garbage-read"},
			planted: `versions "x" "b" "a"; txn 1 client 1 1s..2s committed write "x" "a"`,
			clean:   `versions "x" "a"; txn 1 client 1 1s..2s committed write "x" "a"`,
		},
		{
			name: "duplicate", level: ReadCommitted, want: []string{"duplicate"},
			planted: `versions "x" "a" "a"; txn 1 client 1 1s..2s committed write "x" "a"`,
			clean:   `versions "x" "a" "b"; txn 1 client 1 1s..2s committed write "x" "a" write "x" "b"`,
		},
		{
			name: "own write not seen", level: ReadCommitted, want: []string{"internal"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a" read "x" none`,
			clean:   `txn 1 client 1 1s..2s committed write "x" "a" read "x" "a"`,
		},
		{
			name: "own write seen too early", level: ReadCommitted, want: []string{"internal"},
			planted: `txn 1 client 1 1s..2s committed read "x" "a" write "x" "a"`,
			clean:   `txn 1 client 1 1s..2s committed read "x" none write "x" "a"`,
		},
		{
			name: "older own write seen", level: ReadCommitted, want: []string{"internal"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a" write "x" "b" read "x" "a"`,
			clean:   `txn 1 client 1 1s..2s committed write "x" "a" write "x" "b" read "x" "b"`,
		},
		{
			name: "lost write", level: ReadCommitted, want: []string{"lost-write"},
			planted: `versions "x" "b"; txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
			clean:   `versions "x" "b"; txn 1 client 1 1s..? unknown write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
		},
		{
			name: "part of an unknown commit lost", level: ReadCommitted, want: []string{"lost-write"},
			planted: `versions "x"; versions "y" "b"; txn 1 client 1 1s..? unknown write "x" "a" write "y" "b"`,
			clean:   `versions "x" "a"; versions "y" "b"; txn 1 client 1 1s..? unknown write "x" "a" write "y" "b"`,
		},
		{
			name: "dirty update", level: ReadCommitted, want: []string{"dirty-update"},
			planted: `versions "x" "a" "b"; txn 1 client 1 1s..2s aborted write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
			clean:   `versions "x" "a" "b"; txn 1 client 1 1s..? unknown write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
		},
		{
			name: "G1a", level: ReadCommitted, want: []string{"G1a"},
			planted: `txn 1 client 1 1s..2s aborted write "x" "a"; txn 2 client 2 3s..4s committed read "x" "a"`,
			clean:   `txn 1 client 1 1s..? unknown write "x" "a"; txn 2 client 2 3s..4s committed read "x" "a"`,
		},
		{
			name: "G1b", level: Serializable, want: []string{"G1b"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a" write "x" "b"; txn 2 client 2 3s..4s committed read "x" "a"`,
			clean:   `txn 1 client 1 1s..2s committed write "x" "a" write "x" "b"; txn 2 client 2 3s..4s committed read "x" "b"`,
		},
	}
}

func cycleAnomalies() []anomalyTest {
	return []anomalyTest{
		{
			name: "G0", level: ReadCommitted, want: []string{"G0"},
			planted: `versions "x" "a" "b"; versions "y" "d" "c"
				txn 1 client 1 1s..4s committed write "x" "a" write "y" "c"; txn 2 client 2 1s..4s committed write "x" "b" write "y" "d"`,
			clean: `versions "x" "a" "b"; versions "y" "c" "d"
				txn 1 client 1 1s..4s committed write "x" "a" write "y" "c"; txn 2 client 2 1s..4s committed write "x" "b" write "y" "d"`,
		},
		{
			name: "G1c", level: ReadCommitted, want: []string{"G1c"},
			planted: `txn 1 client 1 1s..4s committed write "x" "a" read "y" "b"; txn 2 client 2 1s..4s committed write "y" "b" read "x" "a"`,
			clean:   `txn 1 client 1 1s..4s committed write "x" "a" read "y" none; txn 2 client 2 1s..4s committed write "y" "b" read "x" "a"`,
		},
		{
			name: "G1c with a write dependency", level: ReadCommitted, want: []string{"G1c"},
			planted: `versions "x" "a" "b"
				txn 1 client 1 1s..4s committed write "x" "a" read "y" "c"; txn 2 client 2 1s..4s committed write "x" "b" write "y" "c"`,
			clean: `versions "x" "b" "a"
				txn 1 client 1 1s..4s committed write "x" "a" read "y" "c"; txn 2 client 2 1s..4s committed write "x" "b" write "y" "c"`,
		},
		{
			name: "G-single: a part of a commit read", level: SnapshotIsolation, allowed: ReadCommitted,
			want:    []string{"G-single"},
			planted: `txn 1 client 1 1s..4s committed write "x" "a" write "y" "b"; txn 2 client 2 1s..4s committed read "x" "a" read "y" none`,
			clean:   `txn 1 client 1 1s..4s committed write "x" "a" write "y" "b"; txn 2 client 2 1s..4s committed read "x" "a" read "y" "b"`,
		},
		{
			name: "G-single: non-repeatable read", level: SnapshotIsolation, allowed: ReadCommitted, want: []string{"G-single"},
			planted: `txn 1 client 1 1s..4s committed write "x" "a"; txn 2 client 2 1s..4s committed read "x" none read "x" "a"`,
			clean:   `txn 1 client 1 1s..4s committed write "x" "a"; txn 2 client 2 1s..4s committed read "x" "a" read "x" "a"`,
		},
		{
			name: "lost update", level: SnapshotIsolation, allowed: ReadCommitted, want: []string{"lost-update", "G-single"},
			planted: `versions "x" "a" "b"
				txn 1 client 1 1s..4s committed read "x" none write "x" "a"; txn 2 client 2 1s..4s committed read "x" none write "x" "b"`,
			clean: `versions "x" "a" "b"
				txn 1 client 1 1s..4s committed read "x" none write "x" "a"; txn 2 client 2 1s..4s committed read "x" "a" write "x" "b"`,
		},
		{
			name: "G-nonadjacent: long fork", level: SnapshotIsolation, allowed: ReadCommitted, want: []string{"G-nonadjacent"},
			planted: `txn 1 client 1 1s..4s committed write "x" "a"; txn 2 client 2 1s..4s committed write "y" "b"
				txn 3 client 3 1s..4s committed read "x" "a" read "y" none; txn 4 client 4 1s..4s committed read "x" none read "y" "b"`,
			clean: `txn 1 client 1 1s..4s committed write "x" "a"; txn 2 client 2 1s..4s committed write "y" "b"
				txn 3 client 3 1s..4s committed read "x" "a" read "y" none; txn 4 client 4 1s..4s committed read "x" "a" read "y" "b"`,
		},
		{
			name: "G2-item: write skew", level: Serializable, allowed: StrongSnapshotIsolation, want: []string{"G2-item"},
			planted: `txn 1 client 1 1s..4s committed read "x" none write "y" "a"; txn 2 client 2 1s..4s committed read "y" none write "x" "b"`,
			clean:   `txn 1 client 1 1s..4s committed read "x" none write "y" "a"; txn 2 client 2 1s..4s committed read "y" "a" write "x" "b"`,
		},
		{
			name: "G2-item of three", level: Serializable, allowed: SnapshotIsolation, want: []string{"G2-item"},
			planted: `txn 1 client 1 1s..4s committed read "x" none write "z" "c"; txn 2 client 2 1s..4s committed write "x" "a" read "y" none
				txn 3 client 3 1s..4s committed write "y" "b" read "z" none`,
			clean: `txn 1 client 1 1s..4s committed read "x" none write "z" "c"; txn 2 client 2 1s..4s committed write "x" "a" read "y" none
				txn 3 client 3 1s..4s committed write "y" "b" read "z" "c"`,
		},
	}
}

// subtleAnomalies are neighbours that a careless checker confuses.
func subtleAnomalies() []anomalyTest {
	return []anomalyTest{
		{
			name: "G2-item whose anti-dependencies meet at its beginning", level: Serializable, allowed: SnapshotIsolation,
			want: []string{"G2-item"},
			planted: `txn 1 client 1 1s..9s committed read "y" none write "x" "a"; txn 2 client 2 1s..9s committed write "y" "b" write "z" "c"
				txn 3 client 3 1s..9s committed read "z" "c" read "x" none`,
			clean: `txn 1 client 1 1s..9s committed read "y" none write "x" "a"; txn 2 client 2 1s..9s committed write "y" "b" write "z" "c"
				txn 3 client 3 1s..9s committed read "z" "c" read "x" "a"`,
		},
		{
			name: "G2-item by one of several appends that nobody saw", level: Serializable, allowed: SnapshotIsolation,
			want: []string{"G2-item"},
			planted: `txn 1 client 1 1s..9s committed list "l" ( ) append "m" "d"; txn 2 client 2 1s..9s committed list "m" ( ) append "l" "b"
				txn 3 client 3 1s..9s committed append "l" "c"`,
			clean: `txn 1 client 1 1s..9s committed list "l" ( ) append "m" "d"; txn 2 client 2 1s..9s committed list "m" ( "d" ) append "l" "b"
				txn 3 client 3 1s..9s committed append "l" "c"`,
		},
		{
			name: "lost update of a list that nobody read", level: SnapshotIsolation, allowed: ReadCommitted,
			want:    []string{"lost-update"},
			planted: `txn 1 client 1 1s..4s committed list "l" ( ) append "l" "a"; txn 2 client 2 1s..4s committed list "l" ( ) append "l" "b"`,
			clean:   `txn 1 client 1 1s..4s committed list "l" ( ) append "l" "a"; txn 2 client 2 1s..4s committed append "l" "b"`,
		},
		{
			name: "own append read before another's", level: ReadCommitted, want: []string{"G1a"},
			planted: `txn 1 client 1 1s..4s aborted append "l" "b"; txn 2 client 2 1s..4s committed append "l" "c"; txn 3 client 3 5s..6s committed list "l" ( "b" )`,
			clean: `txn 1 client 1 1s..4s committed append "l" "b" list "l" ( "b" ); txn 2 client 2 1s..4s committed append "l" "c"
				txn 3 client 3 5s..6s committed list "l" ( "c" "b" )`,
		},
		{
			name: "append that aborted is not lost", level: StrictSerializable, allowed: SessionSerializable,
			want:    []string{"G-single-realtime"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 3s..4s committed list "l" ( )`,
			clean:   `txn 1 client 1 1s..2s aborted append "l" "a"; txn 2 client 2 3s..4s committed list "l" ( )`,
		},
		{
			name: "nothing comes after an unknown outcome", level: SessionSerializable, allowed: Serializable,
			want:    []string{"G-single-session"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 1 3s..4s committed read "x" none; txn 3 client 3 5s..6s committed read "x" "a"`,
			clean:   `txn 1 client 1 1s..? unknown write "x" "a"; txn 2 client 1 3s..4s committed read "x" none; txn 3 client 3 5s..6s committed read "x" "a"`,
		},
	}
}

func orderAnomalies() []anomalyTest {
	return []anomalyTest{
		{
			name: "G0-session", level: SessionReadCommitted, allowed: Serializable, want: []string{"G0-session"},
			planted: `versions "x" "b" "a"; txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 1 2s..3s committed write "x" "b"`,
			clean:   `versions "x" "b" "a"; txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 2s..3s committed write "x" "b"`,
		},
		{
			name: "G1c-session", level: SessionReadCommitted, allowed: Serializable, want: []string{"G1c-session"},
			planted: `txn 1 client 1 1s..2s committed read "x" "a"; txn 2 client 1 3s..4s committed write "x" "a"`,
			clean:   `txn 1 client 1 1s..? unknown read "x" "a"; txn 2 client 1 3s..4s committed write "x" "a"`,
		},
		{
			name: "G-single-session: own write not seen", level: SessionSnapshotIsolation, allowed: Serializable,
			want:    []string{"G-single-session"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 1 3s..4s committed read "x" none`,
			clean:   `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed read "x" none`,
		},
		{
			name: "G-single-session of a client that pipelines", level: SessionSerializable, allowed: Serializable,
			want:    []string{"G-single-session"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 1 1s..5s committed write "y" "b"; txn 3 client 1 3s..4s committed read "x" none`,
			clean:   `txn 1 client 1 1s..4s committed write "x" "a"; txn 2 client 1 1s..5s committed write "y" "b"; txn 3 client 1 3s..4s committed read "x" none`,
		},
		{
			name: "G2-item-session", level: SessionSerializable, allowed: SessionSnapshotIsolation,
			want: []string{"G2-item-session"},
			planted: `txn 1 client 1 1s..9s committed read "x" none write "y" "a"
				txn 2 client 2 1s..2s committed write "x" "b"; txn 3 client 2 3s..4s committed read "y" none`,
			clean: `txn 1 client 1 1s..9s committed read "x" none write "y" "a"
				txn 2 client 2 1s..2s committed write "x" "b"; txn 3 client 3 3s..4s committed read "y" none`,
		},
		{
			name: "G0-realtime", level: StrictSerializable, allowed: SessionSerializable, want: []string{"G0-realtime"},
			planted: `versions "x" "b" "a"; txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
			clean:   `versions "x" "b" "a"; txn 1 client 1 1s..3s committed write "x" "a"; txn 2 client 2 3s..4s committed write "x" "b"`,
		},
		{
			name: "G1c-realtime: a read from the future", level: StrictSerializable, allowed: SessionSerializable,
			want:    []string{"G1c-realtime"},
			planted: `txn 1 client 1 1s..2s committed read "x" "a"; txn 2 client 2 3s..4s committed write "x" "a"`,
			clean:   `txn 1 client 1 1s..3s committed read "x" "a"; txn 2 client 2 3s..4s committed write "x" "a"`,
		},
		{
			name: "G-single-realtime: stale read", level: StrongSnapshotIsolation, allowed: SessionSerializable,
			want:    []string{"G-single-realtime"},
			planted: `txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 3s..4s committed read "x" none`,
			clean:   `txn 1 client 1 1s..? unknown write "x" "a"; txn 2 client 2 3s..4s committed read "x" none`,
		},
		{
			name: "G-nonadjacent-realtime", level: StrongSnapshotIsolation, allowed: Serializable,
			want: []string{"G-nonadjacent-realtime"},
			planted: `txn 1 client 1 1s..5s committed write "x" "a"; txn 2 client 2 3s..4s committed write "y" "b"
				txn 3 client 3 5s..7s committed read "x" none; txn 4 client 4 1s..8s committed read "x" "a" read "y" none`,
			clean: `txn 1 client 1 1s..5s committed write "x" "a"; txn 2 client 2 3s..5s committed write "y" "b"
				txn 3 client 3 5s..7s committed read "x" none; txn 4 client 4 1s..8s committed read "x" "a" read "y" none`,
		},
		{
			name: "G2-item-realtime", level: StrictSerializable, allowed: StrongSnapshotIsolation,
			want: []string{"G2-item-realtime"},
			planted: `txn 1 client 1 1s..9s committed read "x" none write "y" "a"
				txn 2 client 2 1s..2s committed write "x" "b"; txn 3 client 3 3s..4s committed read "y" none`,
			clean: `txn 1 client 1 1s..9s committed read "x" none write "y" "a"
				txn 2 client 2 1s..3s committed write "x" "b"; txn 3 client 3 3s..4s committed read "y" none`,
		},
	}
}

func listAnomalies() []anomalyTest {
	return []anomalyTest{
		{
			name: "incompatible order", level: ReadCommitted, want: []string{"incompatible-order"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" "b" ); txn 4 client 4 3s..4s committed list "l" ( "b" )`,
			clean: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" "b" ); txn 4 client 4 3s..4s committed list "l" ( "a" )`,
		},
		{
			name: "incompatible with the record", level: ReadCommitted, want: []string{"incompatible-order"},
			planted: `versions "l" "b" "a"; txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" )`,
			clean: `versions "l" "b" "a"; txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "b" )`,
		},
		{
			name: "element twice", level: ReadCommitted, want: []string{"duplicate"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 3 client 3 3s..4s committed list "l" ( "a" "a" )`,
			clean:   `txn 1 client 1 1s..2s committed append "l" "a"; txn 3 client 3 3s..4s committed list "l" ( "a" )`,
		},
		{
			name: "garbage element", level: ReadCommitted, want: []string{"garbage-read"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 3 client 3 3s..4s committed list "l" ( "g" "a" )`,
			clean:   `txn 1 client 1 1s..2s committed append "l" "a"; txn 3 client 3 3s..4s committed list "l" ( "a" )`,
		},
		{
			name: "own append not seen", level: ReadCommitted, want: []string{"internal"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a" append "l" "b" list "l" ( "a" )`,
			clean:   `txn 1 client 1 1s..2s committed append "l" "a" append "l" "b" list "l" ( "a" "b" )`,
		},
		{
			name: "own append seen too early", level: ReadCommitted, want: []string{"internal"},
			planted: `txn 1 client 1 1s..2s committed list "l" ( "a" ) append "l" "a"`,
			clean:   `txn 1 client 1 1s..2s committed list "l" ( ) append "l" "a"`,
		},
		{
			name: "dirty list", level: ReadCommitted, want: []string{"dirty-update", "G1a"},
			planted: `txn 1 client 1 1s..2s aborted append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" "b" )`,
			clean: `txn 1 client 1 1s..? unknown append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" "b" )`,
		},
		{
			name: "G1b of a list", level: Serializable, want: []string{"G1b"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a" append "l" "b"; txn 2 client 2 1s..2s committed list "l" ( "a" )
				txn 3 client 3 1s..2s committed list "l" ( "a" "b" )`,
			clean: `txn 1 client 1 1s..2s committed append "l" "a" append "l" "b"; txn 2 client 2 1s..2s committed list "l" ( )
				txn 3 client 3 1s..2s committed list "l" ( "a" "b" )`,
		},
		{
			name: "G0 of lists", level: ReadCommitted, want: []string{"G0"},
			planted: `txn 1 client 1 1s..4s committed append "l" "a" append "m" "c"; txn 2 client 2 1s..4s committed append "l" "b" append "m" "d"
				txn 3 client 3 5s..6s committed list "l" ( "a" "b" ) list "m" ( "d" "c" )`,
			clean: `txn 1 client 1 1s..4s committed append "l" "a" append "m" "c"; txn 2 client 2 1s..4s committed append "l" "b" append "m" "d"
				txn 3 client 3 5s..6s committed list "l" ( "a" "b" ) list "m" ( "c" "d" )`,
		},
		{
			name: "lost update of a list", level: SnapshotIsolation, allowed: ReadCommitted,
			want: []string{"lost-update", "G-single"},
			planted: `txn 1 client 1 1s..4s committed list "l" ( ) append "l" "a"; txn 2 client 2 1s..4s committed list "l" ( ) append "l" "b"
				txn 3 client 3 5s..6s committed list "l" ( "a" "b" )`,
			clean: `txn 1 client 1 1s..4s committed list "l" ( ) append "l" "a"; txn 2 client 2 1s..4s committed list "l" ( "a" ) append "l" "b"
				txn 3 client 3 5s..6s committed list "l" ( "a" "b" )`,
		},
		{
			name: "lost append", level: StrictSerializable, allowed: SessionSerializable, want: []string{"G-single-realtime"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" )`,
			clean: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..3s committed append "l" "b"
				txn 3 client 3 3s..4s committed list "l" ( "a" )`,
		},
		{
			name: "several lost appends", level: StrictSerializable, allowed: SessionSerializable,
			want: []string{"G-single-realtime"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..2s committed append "l" "b"; txn 5 client 5 1s..9s committed append "l" "c"
				txn 3 client 3 3s..4s committed list "l" ( "a" )`,
			clean: `txn 1 client 1 1s..2s committed append "l" "a"; txn 2 client 2 1s..8s committed append "l" "b"; txn 5 client 5 1s..9s committed append "l" "c"
				txn 3 client 3 3s..4s committed list "l" ( "a" )`,
		},
		{
			name: "own append after others'", level: Serializable, allowed: ReadCommitted, want: []string{"G-single"},
			planted: `txn 1 client 1 1s..2s committed append "l" "a" append "m" "c"; txn 2 client 2 1s..4s committed list "m" ( ) append "l" "b" list "l" ( "a" "b" )
				txn 3 client 3 5s..6s committed list "m" ( "c" )`,
			clean: `txn 1 client 1 1s..2s committed append "l" "a" append "m" "c"; txn 2 client 2 1s..4s committed list "m" ( "c" ) append "l" "b" list "l" ( "a" "b" )
				txn 3 client 3 5s..6s committed list "m" ( "c" )`,
		},
	}
}

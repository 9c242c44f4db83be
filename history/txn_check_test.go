package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTransactionsBadInput(t *testing.T) {
	for _, test := range []struct {
		text  string
		level Level
		want  string
	}{
		{``, 0, "history: no such level: 0"},
		{``, 9, "history: no such level: 9"},
		{`txn 1 client 1 1s..2s committed; txn 1 client 2 1s..2s committed`, Serializable,
			"history: T1: there are two of this name"},
		{
			`txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 1s..2s aborted write "x" "a"`, Serializable,
			`history: T1 and T2 both write "a" to "x": a key's values must be unique`,
		},
		{
			`txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 1s..2s committed list "x" ( )`, Serializable,
			`history: key "x" is used as a register and as a list, the latter by access 0 of T2`,
		},
		{
			`txn 1 client 1 1s..2s committed write "x" "a"; txn 2 client 2 1s..2s committed write "x" "b"`, Serializable,
			`history: several transactions, T1 and T2 among them, wrote "x": the order of its versions must be recorded`,
		},
	} {
		h, err := ParseTransactions("test", []byte("history transactions\n"+strings.ReplaceAll(test.text, ";", "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := CheckTransactions(h, test.level); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	for _, a := range []Access{
		{}, {Kind: Write, Key: "x"}, {Kind: Append, Key: "x"}, {Kind: Read, List: []string{"a"}},
		{Kind: ReadList, Value: "a"}, {Kind: ReadList, List: []string{""}},
	} {
		h := Transactions{Txns: []Txn{{ID: 3, Accesses: []Access{a}}}}
		if _, err := CheckTransactions(h, Serializable); err == nil ||
			!strings.HasPrefix(err.Error(), "history: T3: access 0 to ") {
			t.Errorf("%+v: got %v", a, err)
		}
	}
}

func TestReport(t *testing.T) {
	report := checkText(t, `versions "x" "a" "b"
		txn 1 client 1 1s..2s committed write "x" "a" append "l" "p"; txn 2 client 2 3s..4s committed read "x" none list "l" ( )
		txn 3 client 3 5s..6s committed read "x" none write "x" "b"`, StrictSerializable)
	want := `strict serializable: violation
lost-update: T3 read nothing of "x" and wrote the key, but T1 had replaced that meanwhile
G-single: T1 < T3 < T1, a cycle:
	T1 wrote version "a" of "x", which T3 followed with "b"
	T3 read nothing of "x", which T1 followed with "a"
G-single-realtime: T1 < T3 < T1, a cycle:
	T1 ended at 2s, before T3 began at 5s
	T3 read nothing of "x", which T1 followed with "a"
`
	if diff := cmp.Diff(want, report.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	want = `digraph anomalies {
	subgraph cluster_0 {
		label="lost-update"
		"a0_T1" [label="T1"]
		"a0_T3" [label="T3"]
	}
	subgraph cluster_1 {
		label="G-single"
		"a1_T1" [label="T1"]
		"a1_T3" [label="T3"]
		"a1_T1" -> "a1_T3" [label="ww x"]
		"a1_T3" -> "a1_T1" [label="rw x"]
	}
	subgraph cluster_2 {
		label="G-single-realtime"
		"a2_T1" [label="T1"]
		"a2_T3" [label="T3"]
		"a2_T1" -> "a2_T3" [label="real time"]
		"a2_T3" -> "a2_T1" [label="rw x"]
	}
}
`
	if diff := cmp.Diff(want, report.DOT()); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
}

// TestReportIsBounded checks that a report holds a few of many anomalies, and counts all.
func TestReportIsBounded(t *testing.T) {
	var h Transactions
	for i := range 50 {
		h.Txns = append(h.Txns,
			Txn{ID: TxnID(2 * i), Outcome: Returned, Accesses: []Access{{Kind: Write, Key: fmt.Sprint(i), Value: "a"},
				{Kind: Read, Key: fmt.Sprint(-i - 1), Value: "b"}}},
			Txn{ID: TxnID(2*i + 1), Outcome: Returned, Accesses: []Access{{Kind: Write, Key: fmt.Sprint(-i - 1), Value: "b"},
				{Kind: Read, Key: fmt.Sprint(i), Value: "a"}}})
	}
	report, err := CheckTransactions(h, ReadCommitted)
	if err != nil || len(report.Anomalies) != maxWitnesses || report.Count("G1c") != 50 {
		t.Errorf("%d anomalies, %d counted, %v", len(report.Anomalies), report.Count("G1c"), err)
	}
}

// TestLongCycle checks that the depth of a history does not matter: one cycle goes through all of
// it.
func TestLongCycle(t *testing.T) {
	const n = 50_000
	var h Transactions
	for i := range n {
		h.Txns = append(h.Txns, Txn{
			ID: TxnID(i), Client: Client(i), Begin: 0, End: time.Second, Outcome: Returned,
			Accesses: []Access{{Kind: Write, Key: fmt.Sprint(i), Value: "v"}, {Kind: Read, Key: fmt.Sprint((i + 1) % n),
				Value: "v"}},
		})
	}
	report, err := CheckTransactions(h, StrictSerializable)
	if err != nil || len(report.Names()) != 1 || report.Names()[0] != "G1c" || len(report.Anomalies[0].Txns) != n {
		t.Errorf("%v, %v", report.Names(), err)
	}
}

// BenchmarkCheckTransactions checks 100,000 transactions of a store that keeps the level, and of
// one that keeps less.
func BenchmarkCheckTransactions(b *testing.B) {
	for _, bench := range []struct {
		store, level Level
	}{
		{StrictSerializable, ReadCommitted},
		{StrictSerializable, Serializable},
		{StrictSerializable, StrictSerializable},
		{StrongSnapshotIsolation, StrongSnapshotIsolation},
		{StrongSnapshotIsolation, StrictSerializable},
	} {
		for _, lists := range []bool{false, true} {
			name := fmt.Sprintf("store=%v/level=%v/lists=%v", bench.store, bench.level, lists)
			b.Run(name, func(b *testing.B) {
				h := simulate(storeConfig{seed: 1, txns: 100_000, clients: 20, keys: 2000, level: bench.store, lists: lists})
				b.ReportAllocs()
				for b.Loop() {
					report, err := CheckTransactions(h, bench.level)
					if err != nil {
						b.Fatal(err)
					}
					if bench.store == bench.level && report.Verdict() != OK {
						b.Fatal(report)
					}
				}
				b.ReportMetric(float64(len(h.Txns))*float64(b.N)/b.Elapsed().Seconds(), "txns/s")
			})
		}
	}
}

package history_test

import (
	"fmt"
	"os"
	"time"

	"github.com/foresay/foresay/history"
)

func ExampleCheckLinearizable() {
	const ms = time.Millisecond
	var r history.KVRecorder

	put := r.Invoke(1, 1*ms, history.KVInput{Kind: history.KVPut, Key: "x", Value: "old"})
	put.Return(2*ms, history.KVOutput{})
	put = r.Invoke(1, 3*ms, history.KVInput{Kind: history.KVPut, Key: "x", Value: "new"})
	put.Return(4*ms, history.KVOutput{})
	// A client that gives up: whether its write happened, nobody knows.
	r.Invoke(2, 3*ms, history.KVInput{Kind: history.KVPut, Key: "x", Value: "other"})
	get := r.Invoke(3, 5*ms, history.KVInput{Kind: history.KVGet, Key: "x"})
	get.Return(6*ms, history.KVOutput{State: history.KVState{Value: "old", Found: true}})

	ops, err := r.Ops()
	if err != nil {
		fmt.Println(err)
	}
	result, err := history.CheckLinearizable(ops, history.KVModel(), 10*time.Second)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(result.Verdict)
	fmt.Print(result.Explanation)
	// Output:
	// violation
	// "x" is not linearizable: no order explains what these operations, 3 of 4, returned
	// 	client 1 1ms..2ms put "x" "old" ok
	// 	client 1 3ms..4ms put "x" "new" ok
	// 	client 3 5ms..6ms get "x" "old"
}

// A model of one's own: a lock, which only its holder releases.
func ExampleModel() {
	type request struct {
		who     string
		acquire bool
	}
	lock := history.Model[string, request, bool]{
		Init: func() string { return "nobody" },
		Step: func(holder string, r request, ok *bool) (string, bool) {
			switch {
			case r.acquire && holder == "nobody":
				return r.who, ok == nil || *ok
			case !r.acquire && holder == r.who:
				return "nobody", ok == nil || *ok
			}
			return holder, ok == nil || !*ok
		},
	}
	ops := []history.Op[request, bool]{
		{Client: 1, Call: 1, Return: 2, Outcome: history.Returned, Input: request{"ann", true}, Output: true},
		{Client: 1, Call: 3, Input: request{"ann", false}}, // no answer
		{Client: 2, Call: 4, Return: 5, Outcome: history.Returned, Input: request{"bob", true}, Output: true},
	}
	result, err := history.CheckLinearizable(ops, lock, time.Second)
	fmt.Println(result.Verdict, err)
	result, err = history.CheckLinearizable(append(ops[:1:1], ops[2]), lock, time.Second)
	fmt.Println(result.Verdict, err)
	// Output:
	// ok <nil>
	// violation <nil>
}

func ExampleCheckTransactions() {
	const ms = time.Millisecond
	var r history.TxnRecorder
	alice := r.Begin(1, 1, 1*ms)
	bob := r.Begin(2, 2, 2*ms)
	alice.Read("on call: bob", history.Initial)
	alice.Write("on call: alice", "no, says 1")
	bob.Read("on call: alice", history.Initial)
	bob.Write("on call: bob", "no, says 2")
	alice.Commit(3 * ms)
	bob.Commit(4 * ms)

	h, err := r.Transactions()
	if err != nil {
		fmt.Println(err)
	}
	for _, level := range []history.Level{history.SnapshotIsolation, history.Serializable} {
		report, err := history.CheckTransactions(h, level)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Print(report)
	}
	// Output:
	// snapshot isolation: ok
	// serializable: violation
	// G2-item: T1 < T2 < T1, a cycle:
	// 	T1 read nothing of "on call: bob", which T2 followed with "no, says 2"
	// 	T2 read nothing of "on call: alice", which T1 followed with "no, says 1"
}

func ExampleCheckReplication() {
	const ms = time.Millisecond
	report, err := history.CheckReplication(history.Replication[string]{
		Proposals: []history.Proposal[string]{
			{ID: "c1-1", Client: 1, Call: 1 * ms, Return: 4 * ms, Outcome: history.Returned},
			{ID: "c2-1", Client: 2, Call: 2 * ms}, // no answer
			{ID: "c3-1", Client: 3, Call: 5 * ms, Return: 9 * ms, Outcome: history.Returned},
		},
		Logs: []history.AppliedLog[string]{
			{Replica: "oregon", IDs: []string{"c2-1", "c1-1", "c3-1"}},
			{Replica: "seoul", IDs: []string{"c2-1", "c3-1"}},
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(report)
	// Output:
	// replication: violation
	// agreement: as number 1, replica oregon applied command c1-1 and replica seoul command c3-1
}

func ExampleCheckSpeculation() {
	report, err := history.CheckSpeculation(history.Speculation[string]{Executions: []history.Execution[string]{
		{
			ID: "transfer", Node: "oregon", Session: 1, Begin: 1, Snapshot: 5, Writes: []string{"from", "to"},
			Local: history.Commit{Event: 4, Timestamp: 6},
		},
		{
			ID: "audit", Node: "oregon", Session: 2, Begin: 2, Snapshot: 8,
			Reads: []history.SnapshotRead[string]{
				{Key: "from", Event: 3},
				{Key: "to", Event: 5, State: history.LocalCommitted, Writer: "transfer", Timestamp: 6},
			},
			Data: []string{"transfer"},
		},
	}})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(report)
	// Output:
	// speculation: violation
	// atomic snapshot: audit (oregon: RS 8) read "to" at event 5 from transfer with LC 6, and "from" at event 3 as unwritten, though transfer wrote it too
}

func ExampleParseKV() {
	h, err := history.ParseKV("run.txt", []byte(`history kv
# What was left of a run.
op client 1 1ms..2ms put "x" "1" ok
op client 2 1.5ms..? append "x" "2" unknown
op client 3 3ms..4ms get "x" "12"
`))
	if err != nil {
		fmt.Println(err)
	}
	result, err := history.CheckLinearizable(h, history.KVModel(), time.Second)
	fmt.Println(result.Verdict, err)

	_, err = history.ParseKV("run.txt", []byte("history kv\nop client 1 2ms..1ms delete \"x\" ok\n"))
	fmt.Println(err)
	// Output:
	// ok <nil>
	// history: run.txt:2: the operation returns at 1ms, before its call at 2ms
}

func ExampleParseTransactions() {
	h, err := history.ParseTransactions("run.txt", []byte(`history transactions
txn 1 client 1 1ms..2ms committed append "l" "a"
txn 2 client 2 3ms..4ms committed list "l" ( )
`))
	if err != nil {
		fmt.Println(err)
	}
	report, err := history.CheckTransactions(h, history.StrictSerializable)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(report.Names())
	fmt.Print(report.Anomalies[0].DOT())
	if err := h.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [G-single-realtime]
	// digraph "G-single-realtime" {
	// 	"T1" [label="T1"]
	// 	"T2" [label="T2"]
	// 	"T1" -> "T2" [label="real time"]
	// 	"T2" -> "T1" [label="rw l"]
	// }
	// history transactions
	// txn 1 client 1 1ms..2ms committed append "l" "a"
	// txn 2 client 2 3ms..4ms committed list "l" ( )
}

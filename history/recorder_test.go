package history

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecorderConcurrently records a register behind a lock, by many goroutines, on a clock that is
// the lock's.
func TestRecorderConcurrently(t *testing.T) {
	var r KVRecorder
	var mu sync.Mutex
	var now time.Duration
	var state KVState
	tick := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now++
		return now
	}
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for i := range 50 {
				get := r.Invoke(Client(client), tick(), KVInput{Kind: KVGet, Key: "x"})
				mu.Lock()
				seen := state
				mu.Unlock()
				get.Return(tick(), KVOutput{State: seen})
				value := fmt.Sprintf("%d.%d", client, i)
				put := r.Invoke(Client(client), tick(), KVInput{Kind: KVPut, Key: "x", Value: value})
				if i%7 == 0 {
					put.Fail(tick())
					continue
				}
				mu.Lock()
				state = KVState{value, true}
				mu.Unlock()
				if i%5 != 0 { // else the answer is lost
					put.Return(tick(), KVOutput{})
				}
			}
		})
	}
	wg.Wait()
	ops, err := r.Ops()
	if err != nil || len(ops) != 800 {
		t.Fatalf("%d operations, %v", len(ops), err)
	}
	result, err := CheckLinearizable(ops, KVModel(), time.Minute)
	if err != nil || result.Verdict != OK {
		t.Errorf("%v, %v\n%s", result.Verdict, err, result.Explanation)
	}
}

func TestRecorderMisuse(t *testing.T) {
	var r KVRecorder
	op := r.Invoke(3, 10, KVInput{Kind: KVPut, Key: "x", Value: "1"})
	op.Return(9, KVOutput{})
	op.Return(11, KVOutput{})
	op.Fail(12)
	ops, err := r.Ops()
	want := "history: operation 0 of client 3, called at 10ns: returns at 9ns, before its call at 10ns\n" +
		"history: operation 0 of client 3, called at 10ns: ended twice"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	wantOps := []KVOp{{Client: 3, Call: 10, Return: 11, Outcome: Returned,
		Input: KVInput{Kind: KVPut, Key: "x", Value: "1"}}}
	if diff := cmp.Diff(wantOps, ops); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// TestTxnRecorderConcurrently records serial transactions, of which each reads from several
// goroutines.
func TestTxnRecorderConcurrently(t *testing.T) {
	var r TxnRecorder
	var mu sync.Mutex
	var now time.Duration
	var list []string
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for i := range 20 {
				mu.Lock()
				now++
				id := TxnID(100*client + i)
				txn := r.Begin(id, Client(client), now)
				var reads sync.WaitGroup
				for range 3 {
					reads.Go(func() { txn.ReadList("l", list) })
				}
				reads.Wait()
				element := fmt.Sprint(id)
				txn.Append("l", element)
				list = append(list, element)
				now++
				txn.Commit(now)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	h, err := r.Transactions()
	if err != nil || len(h.Txns) != 160 {
		t.Fatalf("%d transactions, %v", len(h.Txns), err)
	}
	report, err := CheckTransactions(h, StrictSerializable)
	if err != nil || report.Verdict() != OK {
		t.Errorf("%v, %v", report, err)
	}
}

func TestTxnRecorderMisuse(t *testing.T) {
	var r TxnRecorder
	txn := r.Begin(7, 3, 10)
	txn.Commit(9)
	txn.Commit(11)
	txn.Read("x", Initial)
	txn.Abort(12)
	h, err := r.Transactions()
	want := "history: T7 of client 3, begun at 10ns: returns at 9ns, before its call at 10ns\n" +
		"history: T7 of client 3, begun at 10ns: an access to \"x\" after the end\n" +
		"history: T7 of client 3, begun at 10ns: ended twice"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if diff := cmp.Diff([]Txn{{ID: 7, Client: 3, Begin: 10, End: 11, Outcome: Returned}}, h.Txns); diff != "" {
		t.Errorf("transactions (-want +got):\n%s", diff)
	}
}

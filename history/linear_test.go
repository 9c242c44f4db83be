package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func checkKV(t *testing.T, text string) Linearizability {
	t.Helper()
	h, err := ParseKV("test", []byte("history kv\n"+strings.ReplaceAll(text, ";", "\n")))
	if err != nil {
		t.Fatal(err)
	}
	result, err := CheckLinearizable(h, KVModel(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestLinearizable(t *testing.T) {
	for _, test := range []struct {
		name      string
		good, bad string
	}{
		{
			"read", `op client 1 1s..2s put "x" "1" ok; op client 2 2s..4s get "x" none`,
			`op client 1 1s..2s put "x" "1" ok; op client 2 3s..4s get "x" none`,
		},
		{
			"key", `op client 1 1s..2s put "x" "1" ok; op client 2 3s..4s get "y" none`,
			`op client 1 1s..2s put "y" "1" ok; op client 2 3s..4s get "y" none`,
		},
		{
			"append", `op client 1 1s..2s append "x" "1" ok; op client 1 3s..4s append "x" "2" ok; op client 2 5s..6s get "x" "12"`,
			`op client 1 1s..2s append "x" "1" ok; op client 1 3s..4s append "x" "2" ok; op client 2 5s..6s get "x" "21"`,
		},
		{
			"append is done once", `op client 1 1s..? append "x" "1" unknown; op client 2 5s..6s get "x" "1"`,
			`op client 1 1s..? append "x" "1" unknown; op client 2 5s..6s get "x" "11"`,
		},
		{
			"cas", `op client 1 1s..2s cas "x" none "1" swapped; op client 1 3s..4s cas "x" "1" "2" swapped; op client 2 5s..6s cas "x" "1" "3" kept`,
			`op client 1 1s..2s cas "x" none "1" swapped; op client 1 3s..4s cas "x" "1" "2" swapped; op client 2 5s..6s cas "x" "1" "3" swapped`,
		},
		{
			"delete", `op client 1 1s..2s put "x" "1" ok; op client 1 3s..4s delete "x" ok; op client 2 5s..6s get "x" none`,
			`op client 1 1s..2s put "x" "1" ok; op client 1 3s..4s delete "x" ok; op client 2 5s..6s get "x" "1"`,
		},
		{
			"failed", `op client 1 1s..2s put "x" "1" failed; op client 2 3s..4s get "x" none`,
			`op client 1 1s..2s put "x" "1" failed; op client 2 3s..4s get "x" "1"`,
		},
		{
			"unknown takes effect late", `op client 1 1s..? put "x" "1" unknown; op client 2 3s..4s get "x" none; op client 2 5s..6s get "x" "1"`,
			`op client 1 1s..? put "x" "1" unknown; op client 2 3s..4s get "x" "1"; op client 2 5s..6s get "x" none`,
		},
		{
			"unknown does not take effect before its call",
			`op client 1 1s..? put "x" "1" unknown; op client 2 1s..2s get "x" "1"`,
			`op client 1 3s..? put "x" "1" unknown; op client 2 1s..2s get "x" "1"`,
		},
		{
			"unknown cas", `op client 1 1s..2s put "x" "1" ok; op client 2 3s..? cas "x" "1" "2" unknown; op client 3 4s..5s cas "x" "2" "3" swapped`,
			`op client 1 1s..2s put "x" "1" ok; op client 2 3s..? cas "x" "9" "2" unknown; op client 3 4s..5s cas "x" "2" "3" swapped`,
		},
		{
			"hand-off", `op client 1 1s..9s put "x" "1" ok; op client 2 2s..3s get "x" "1"; op client 3 4s..5s get "x" "1"`,
			`op client 1 1s..9s put "x" "1" ok; op client 2 2s..3s get "x" "1"; op client 3 4s..5s get "x" none`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if result := checkKV(t, test.good); result.Verdict != OK {
				t.Errorf("%v where ok is right\n%s", result.Verdict, result.Explanation)
			}
			if result := checkKV(t, test.bad); result.Verdict != Violation {
				t.Errorf("%v where violation is right", result.Verdict)
			}
		})
	}
}

func TestExplanation(t *testing.T) {
	var b strings.Builder
	for i := range 300 { // what does not matter, on the same key and another one
		key, at := []string{"x", "y"}[i%2], 2*i
		fmt.Fprintf(&b, "op client 1 %dms..%dms put %q \"old%d\" ok;", at, at+1, key, i)
		fmt.Fprintf(&b, "op client 2 %dms..%dms get %q \"old%d\";", at+1, at+2, key, i)
	}
	b.WriteString(`op client 3 1s..? put "x" "lost" unknown; op client 1 1s..2s put "x" "a" ok; op client 2 3s..4s put "x" "b" ok
		op client 3 5s..6s get "x" "a"; op client 4 5s..7s get "x" "b"; op client 1 8s..9s get "x" "b"`)
	result := checkKV(t, b.String())
	want := `"x" is not linearizable: no order explains what these operations, 3 of 306, returned
	client 1 1s..2s put "x" "a" ok
	client 2 3s..4s put "x" "b" ok
	client 3 5s..6s get "x" "a"
`
	if diff := cmp.Diff(want, result.Explanation); diff != "" || result.Part != "x" {
		t.Errorf("part %q, explanation (-want +got):\n%s", result.Part, diff)
	}
}

func TestWriteHTML(t *testing.T) {
	for _, text := range []string{
		`op client 1 1s..2s put "x" "found in the page" ok; op client 2 3s..4s get "x" none`,
		`op client 1 1s..? put "x" "found in the page" unknown; op client 1 3s..4s get "y" none`,
	} {
		var b bytes.Buffer
		if err := checkKV(t, text).WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		if page := b.String(); !strings.Contains(page, "<html") || !strings.Contains(page, `found in the page`) {
			t.Errorf("the page does not show the history: %s", page)
		}
	}
	if err := (Linearizability{}).WriteHTML(&bytes.Buffer{}); err == nil {
		t.Error("no error without a history")
	}
}

// TestUndecided gives the search more orders than it can try: of 40 concurrent appends, none of
// which explains a read. The violation in the key after it is found all the same.
func TestUndecided(t *testing.T) {
	var h KV
	for i := range 40 {
		h = append(h, KVOp{
			Client: Client(i), Call: 1, Return: 2, Outcome: Returned,
			Input: KVInput{Kind: KVAppend, Key: "a", Value: fmt.Sprintf("[%d]", i)},
		})
	}
	h = append(h, KVOp{Client: 40, Call: 1, Return: 3, Outcome: Returned, Input: KVInput{Kind: KVGet, Key: "a"},
		Output: KVOutput{State: KVState{"?", true}}})
	result, err := CheckLinearizable(h, KVModel(), 20*time.Millisecond)
	if err != nil || result.Verdict != Undecided {
		t.Errorf("got %v, %v; want undecided", result.Verdict, err)
	}
	h = append(h, KVOp{Call: 1, Return: 2, Outcome: Returned, Input: KVInput{Kind: KVGet, Key: "b"},
		Output: KVOutput{State: KVState{"?", true}}})
	result, err = CheckLinearizable(h, KVModel(), 20*time.Millisecond)
	if err != nil || result.Verdict != Violation || result.Part != "b" {
		t.Errorf("got %v of %q, %v; want a violation of b", result.Verdict, result.Part, err)
	}
}

func TestLinearizableBadInput(t *testing.T) {
	ok := KVOp{Client: 3, Call: 1, Return: 2, Outcome: Returned, Input: KVInput{Kind: KVGet}}
	backwards, outcome := ok, ok
	backwards.Return = 0
	outcome.Outcome = 9
	for _, test := range []struct {
		ops   KV
		model Model[KVState, KVInput, KVOutput]
		want  string
	}{
		{KV{ok, backwards}, KVModel(), "history: operation 1 of client 3: returns at 0s, before its call at 1ns"},
		{KV{outcome}, KVModel(), "history: operation 0 of client 3: no such outcome: 9"},
		{KV{ok}, Model[KVState, KVInput, KVOutput]{}, "history: the model has no Init or no Step"},
	} {
		if _, err := CheckLinearizable(test.ops, test.model, 0); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// TestRandomLinearizable compares verdicts on small random histories with those of a check that
// tries all orders, and each explanation with what it claims.
func TestRandomLinearizable(t *testing.T) {
	var good, bad int
	for seed := range uint64(4000) {
		h := randomKV(rand.New(rand.NewPCG(seed, 0)))
		result, err := CheckLinearizable(h, KVModel(), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := Violation
		if anyOrder(h, KVState{}) {
			want = OK
			good++
		} else {
			bad++
		}
		if result.Verdict != want {
			var b strings.Builder
			_ = h.WriteText(&b)
			t.Fatalf("seed %d: the verdict is %v, want %v\n%s%s", seed, result.Verdict, want, b.String(), result.Explanation)
		}
		if want == OK {
			continue
		}
		_, lines, _ := strings.Cut(result.Explanation, "\n")
		core, err := ParseKV("explanation", []byte("history kv\n"+strings.ReplaceAll(lines, "\tclient", "op client")))
		if err != nil {
			t.Fatal(err)
		}
		if anyOrder(core, KVState{}) {
			t.Fatalf("seed %d: this explains nothing:\n%s", seed, result.Explanation)
		}
	}
	if good < 500 || bad < 500 {
		t.Errorf("only %d histories were right and %d wrong", good, bad)
	}
}

func randomKV(r *rand.Rand) KV {
	var h KV
	kinds := KVDelete + 1
	if r.IntN(2) == 0 {
		kinds = KVAppend // no more than get and put
	}
	value := func() string { return fmt.Sprint(r.IntN(3)) }
	for client := range 3 {
		at := time.Duration(0)
		for range 1 + r.IntN(2) {
			op := KVOp{Client: Client(client), Call: at + time.Duration(r.IntN(3)),
				Input: KVInput{Key: "x", Kind: KVKind(1 + r.IntN(int(kinds)-1))}}
			if op.Input.Kind != KVGet && op.Input.Kind != KVDelete {
				op.Input.Value = value()
			}
			op.Return = op.Call + time.Duration(r.IntN(4))
			at = op.Return
			switch {
			case r.IntN(4) == 0:
				op.Return = 0
			case r.IntN(8) == 0:
				op.Outcome = Failed
			default:
				op.Outcome = Returned
			}
			op.Output.Swapped = r.IntN(2) == 0
			if r.IntN(3) > 0 {
				op.Output.State = KVState{value(), true}
			}
			if r.IntN(3) > 0 {
				op.Input.Expect = KVState{value(), true}
			}
			h = append(h, plainKV(op))
		}
	}
	return h
}

// anyOrder reports whether the operations can be done one at a time, those without an answer or
// not.
func anyOrder(ops KV, state KVState) bool {
	if !slices.ContainsFunc(ops, func(op KVOp) bool { return op.Outcome == Returned }) {
		return true
	}
	for i, op := range ops {
		if op.Outcome == Failed || slices.ContainsFunc(ops, func(other KVOp) bool {
			return other.Outcome == Returned && other.Return < op.Call
		}) {
			continue
		}
		output := &op.Output
		if op.Outcome == Unknown {
			output = nil
		}
		if next, ok := stepKV(state, op.Input, output); ok && anyOrder(slices.Delete(slices.Clone(ops), i, i+1), next) {
			return true
		}
	}
	return false
}

// TestRefusedUnknown checks that an operation with unknown outcome need not take effect: of a lock
// whose acquisition waits, two clients may have asked for it in vain.
func TestRefusedUnknown(t *testing.T) {
	lock := Model[bool, bool, struct{}]{
		Init: func() bool { return false },
		Step: func(held, acquire bool, _ *struct{}) (bool, bool) { return acquire, held != acquire },
	}
	ops := []Op[bool, struct{}]{
		{Client: 1, Call: 1, Return: 2, Outcome: Returned, Input: true},
		{Client: 2, Call: 3, Input: true},
		{Client: 3, Call: 3, Input: true},
	}
	if result, err := CheckLinearizable(ops, lock, time.Minute); err != nil || result.Verdict != OK {
		t.Errorf("%v, %v; want ok", result.Verdict, err)
	}
	ops[1].Outcome, ops[1].Return = Returned, 4
	if result, err := CheckLinearizable(ops, lock, time.Minute); err != nil || result.Verdict != Violation {
		t.Errorf("%v, %v; want a violation", result.Verdict, err)
	}
}

func BenchmarkCheckLinearizable(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	const keys, clients = 100, 20
	var h KV
	state := make(map[string]KVState)
	for i := range 100_000 / clients {
		for client := range clients { // each takes effect in this order, within what it overlaps
			call := time.Duration(i)*100 + time.Duration(client)
			op := KVOp{Client: Client(client), Call: call, Return: call + 90, Outcome: Returned,
				Input: KVInput{Kind: KVGet, Key: fmt.Sprint(r.IntN(keys))}}
			if r.IntN(2) == 0 {
				op.Input.Kind, op.Input.Value = KVPut, fmt.Sprintf("%d.%d", i, client)
				state[op.Input.Key] = KVState{op.Input.Value, true}
				if r.IntN(20) == 0 {
					op.Outcome, op.Return = Unknown, 0
				}
			} else {
				op.Output.State = state[op.Input.Key]
			}
			h = append(h, op)
		}
	}
	for b.Loop() {
		if result, err := CheckLinearizable(h, KVModel(), time.Minute); err != nil || result.Verdict != OK {
			b.Fatal(result.Verdict, err)
		}
	}
	b.ReportMetric(float64(len(h))*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

package history

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const kvText = `history kv
op client 1 1ms..3ms put "x" "1" ok
op client 1 4ms..? append "x" "2" unknown
op client -2 2ms..3.5ms get "x" "1"
op client 2 5ms..6ms get "y" none
op client 2 7ms..8ms cas "x" "1" "3" swapped
op client 3 1h0m0s..1h0m0.000000001s cas "\xff\n " none "" kept
op client 3 9ms..10ms delete "y" failed
`

const txnText = `history transactions
versions "x" "a" "b"
versions "z"
txn 7 client 1 1ms..2ms committed read "x" "a" write "x" "b"
txn 8 client 2 1ms..? unknown read "y" none append "l" "p"
txn 9 client 3 -4ms..5ms aborted list "l" ( "p" "\xff )" ) list "m" ( )
`

func TestText(t *testing.T) {
	h, err := ParseKV("kv", []byte(kvText))
	if err != nil {
		t.Fatal(err)
	}
	want := KVOp{
		Client: 3, Call: time.Hour, Return: time.Hour + 1, Outcome: Returned,
		Input: KVInput{Kind: KVCAS, Key: "\xff\n ", Value: ""}, Output: KVOutput{},
	}
	if diff := cmp.Diff(want, h[5]); diff != "" {
		t.Errorf("operation 5 (-want +got):\n%s", diff)
	}
	var b strings.Builder
	if err := h.WriteText(&b); err != nil || b.String() != kvText {
		t.Errorf("%v, written again:\n%s", err, b.String())
	}
	txns, err := ParseTransactions("txns", []byte("\n# a comment\n"+txnText))
	if err != nil {
		t.Fatal(err)
	}
	wantTxn := Txn{ID: 7, Client: 1, Begin: time.Millisecond, End: 2 * time.Millisecond, Outcome: Returned,
		Accesses: []Access{
			{Kind: Read, Key: "x", Value: "a"}, {Kind: Write, Key: "x", Value: "b"},
		}}
	if diff := cmp.Diff(wantTxn, txns.Txns[0]); diff != "" {
		t.Errorf("transaction 0 (-want +got):\n%s", diff)
	}
	b.Reset()
	if err := txns.WriteText(&b); err != nil || b.String() != txnText {
		t.Errorf("%v, written again:\n%s", err, b.String())
	}
	for _, err := range []error{h.WriteJSON(&bytes.Buffer{}), txns.WriteJSON(&bytes.Buffer{})} {
		if err == nil || !strings.Contains(err.Error(), `"\xff`) {
			t.Errorf("JSON of what is not UTF-8: %v", err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, `history: f: empty`},
		{`# nothing`, `history: f: empty`},
		{"history txn", `history: f:1: "txn" where "kv" should be`},
		{"history kv\n\nput", `history: f:3: "put" where "op" should be`},
		{"history kv\nop client x", `history: f:2: "x" is no client's number`},
		{"history kv\nop client 1 1..2", `history: f:2: "1" is no time such as 1.5ms`},
		{"history kv\nop client 1 1s", `history: f:2: "1s" is no interval such as 1ms..2ms or 1ms..?`},
		{"history kv\nop client 1 1s..2s set", `history: f:2: "set" is no operation on a key-value store`},
		{"history kv\nop client 1 1s..2s get", `history: f:2: the line ends too early`},
		{"history kv\nop client 1 1s..2s get x", `history: f:2: "x" where a string between quotation marks should be`},
		{"history kv\nop client 1 1s..2s get \"x", `history: f:2: "x is no string`},
		{"history kv\nop client 1 1s..2s get \"x\"y", `history: f:2: y after a string`},
		{"history kv\nop client 1 1s..2s get \"x\" ok", `history: f:2: "ok" is no outcome of get`},
		{"history kv\nop client 1 1s..2s put \"x\" \"1\" \"1\"", `history: f:2: put returns no value`},
		{"history kv\nop client 1 1s..2s get \"x\" none more", `history: f:2: "more" after the end`},
		{"history kv\nop client 1 1s..2s get \"x\" unknown",
			`history: f:2: an operation has an end if and only if its outcome is not unknown`},
		{"history kv\nop client 1 2s..1s get \"x\" none", `history: f:2: the operation returns at 1s, before its call at 2s`},
		{`{"history": "kv", "more": 1}`, `history: f: after byte 28: json: unknown field "more"`},
		{`{"history": "kw"}`, `history: f: history: "kw" where "kv" should be`},
		{`{"history": "kv"} {}`, `history: f: more follows the history, after byte 19`},
		{`{"history": "kv", "ops": [{"op": "set", "outcome": "unknown"}]}`,
			`history: f: ops[0]: "set" is no operation on a key-value store`},
		{`{"history": "kv", "ops": [{"op": "get", "outcome": "?"}]}`, `history: f: ops[0]: "?" is no outcome`},
		{`{"history": "kv", "ops": [{"op": "get", "outcome": "returned"}]}`,
			`history: f: ops[0]: it has a return_ns if and only if its outcome is not unknown`},
		{`{"history": "kv", "ops": [{"op": "get", "value": "v", "outcome": "unknown"}]}`,
			`history: f: ops[0]: get has a field that it cannot have`},
	} {
		if _, err := ParseKV("f", []byte(test.text)); err == nil || err.Error() != test.want {
			t.Errorf("%s\n\tgot  %v\n\twant %s", test.text, err, test.want)
		}
	}
	for _, test := range []struct{ text, want string }{
		{"history transactions\nfoo", `history: f:2: "foo" where versions or txn should be`},
		{"history transactions\nversions \"x\"\nversions \"x\"", `history: f:3: key "x" has its versions already`},
		{"history transactions\ntxn -1", `history: f:2: "-1" is no transaction's number`},
		{"history transactions\ntxn 1 client 1 1s..2s maybe", `history: f:2: "maybe" is no outcome of a transaction`},
		{"history transactions\ntxn 1 client 1 1s..? committed",
			`history: f:2: T1 has an end if and only if its outcome is not unknown`},
		{"history transactions\ntxn 1 client 1 1s..2s committed set", `history: f:2: "set" is no access`},
		{"history transactions\ntxn 1 client 1 1s..2s committed write \"x\" \"\"",
			`history: f:2: write "x": the empty string is the initial version, which nobody writes`},
		{"history transactions\ntxn 1 client 1 1s..2s committed list \"x\" ( \"a\"", `history: f:2: the line ends too early`},
		{`{"history": "transactions", "txns": [{"id": 1, "outcome": "aborted"}]}`,
			`history: f: txns[0]: it has an end_ns if and only if its outcome is not unknown`},
		{`{"history": "transactions", "txns": [{"id": 1, "outcome": "unknown", "accesses": [{"kind": "read", "key": "x", "list": ["a"]}]}]}`, `history: f: txns[0].accesses[0]: read has a list`},
	} {
		if _, err := ParseTransactions("f", []byte(test.text)); err == nil || err.Error() != test.want {
			t.Errorf("%s\n\tgot  %v\n\twant %s", test.text, err, test.want)
		}
	}
}

func FuzzParseKV(f *testing.F) {
	f.Add([]byte(kvText))
	h, err := ParseKV("seed", []byte(strings.Replace(kvText, `\xff`, "", 1)))
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := h.WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseKV("fuzz", data)
		if err != nil {
			return
		}
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return h.WriteText(b) },
			func(b *bytes.Buffer) error { return h.WriteJSON(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				if strings.Contains(err.Error(), "UTF-8") {
					continue
				}
				t.Fatal(err)
			}
			again, err := ParseKV("again", b.Bytes())
			if diff := cmp.Diff(h, again); err != nil || diff != "" {
				t.Fatalf("%v\n%s\n%s", err, b.String(), diff)
			}
		}
	})
}

func FuzzParseTransactions(f *testing.F) {
	f.Add([]byte(txnText))
	h, err := ParseTransactions("seed", []byte(strings.Replace(txnText, `\xff`, "", 1)))
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := h.WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	for _, test := range anomalies() {
		f.Add([]byte("history transactions\n" + strings.ReplaceAll(test.planted, ";", "\n")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseTransactions("fuzz", data)
		if err != nil {
			return
		}
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return h.WriteText(b) },
			func(b *bytes.Buffer) error { return h.WriteJSON(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				if strings.Contains(err.Error(), "UTF-8") {
					continue
				}
				t.Fatal(err)
			}
			again, err := ParseTransactions("again", b.Bytes())
			if diff := cmp.Diff(h, again); err != nil || diff != "" {
				t.Fatalf("%v\n%s\n%s", err, b.String(), diff)
			}
		}
		// Whatever the history, the checker answers.
		report, err := CheckTransactions(h, StrictSerializable)
		if err == nil && len(report.DOT()) == 0 {
			t.Fatal("no graph")
		}
	})
}

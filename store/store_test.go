package store

import (
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/google/go-cmp/cmp"
)

func TestVersionsAndPriorities(t *testing.T) {
	low, high := Version{Time: 1, Client: 9}, Version{Time: 2, Client: 1}
	if !high.After(low) || low.After(high) || low.After(low) || !low.After(Version{}) || low.String() != "1/9" {
		t.Errorf("%v and %v are not ordered by time", low, high)
	}
	if tie := (Version{Time: 1, Client: 10}); !tie.After(low) || low.After(tie) {
		t.Errorf("%v and %v are not ordered by client", low, tie)
	}
	old, young, none := Priority{Began: 1, Client: 9}, Priority{Began: 2, Client: 1}, Priority{}
	for _, c := range []struct {
		p, q Priority
		want bool
	}{{old, young, true}, {young, old, false}, {old, old, false}, {old, none, true}, {none, old, false},
		{none, none, false}} {
		if got := c.p.Before(c.q); got != c.want {
			t.Errorf("%v before %v: %v", c.p, c.q, got)
		}
	}
}

func TestValidAccesses(t *testing.T) {
	big := make([]byte, MaxValueBytes)
	for _, c := range []struct {
		name   string
		reads  []Read
		writes []Write
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"in order", []Read{{Key: "a"}, {Key: "b"}}, []Write{{Key: ""}, {Key: "b", Delete: true}}, ""},
		{"reads out of order", []Read{{Key: "b"}, {Key: "a"}}, nil, `the key "a" comes after "b"`},
		{"a key twice", nil, []Write{{Key: "a"}, {Key: "a"}}, `the key "a" comes after "a"`},
		{"too many", make([]Read, MaxAccesses+1), nil, "4097 reads"},
		{"long key", []Read{{Key: Key(big[:MaxKeyBytes+1])}}, nil, "a key of 4097 bytes"},
		{"long key to write", nil, []Write{{Key: Key(big[:MaxKeyBytes+1])}}, "a key of 4097 bytes"},
		{"long value", nil, []Write{{Key: "a", Bytes: append(big, 0)}}, "a value of 1048577 bytes"},
		{"deletion with a value", nil, []Write{{Key: "a", Delete: true, Bytes: big}}, "a deletion with a value"},
		{"too much", nil, []Write{{Key: "a", Bytes: big}, {Key: "b", Bytes: big}}, "2097154 bytes"},
	} {
		err := ValidAccesses(c.reads, c.writes)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if err := (Txn{}).Validate(); err == nil {
		t.Error("a transaction without an ID is valid")
	}
}

// TestBuffer checks that the first read and the last write count, and that both are in order.
func TestBuffer(t *testing.T) {
	var b Buffer
	if _, ok := b.Get("k"); ok {
		t.Error("an empty buffer has a key")
	}
	first := Value{Version: Version{Time: 1}, Present: true, Bytes: []byte("1")}
	b.Saw("m", first)
	b.Saw("m", Value{Version: Version{Time: 2}})
	b.Saw("a", Value{})
	if v, ok := b.Get("m"); !ok || !cmp.Equal(v, first) {
		t.Errorf("m is %v, %v", v, ok)
	}
	b.Put("z", []byte("z"))
	b.Put("m", []byte("2"))
	b.Delete("m")
	if v, ok := b.Get("m"); !ok || v.Present {
		t.Errorf("m is %v, %v, after it was deleted", v, ok)
	}
	reads, writes := b.Accesses()
	if diff := cmp.Diff([]Read{{Key: "a"}, {"m", Version{Time: 1}}}, reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Write{{Key: "m", Delete: true}, {Key: "z", Bytes: []byte("z")}}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if err := ValidAccesses(reads, writes); err != nil {
		t.Error(err)
	}
}

func TestWire(t *testing.T) {
	txn := Txn{
		ID: TxnID{Time: 1 << 40, Client: 1 << 63}, Priority: Priority{Began: 3, Client: 4},
		Reads:  []Read{{"", Version{}}, {"a", Version{Time: 5, Client: 6}}},
		Writes: []Write{{Key: "a", Bytes: []byte("x")}, {Key: "b", Delete: true}},
	}
	value := Value{Version: Version{Time: 9, Client: 8}, Present: true, Bytes: []byte("y")}
	var w wirefmt.Writer
	TxnFields(w.Coder(), &txn)
	ValueFields(w.Coder(), &value)
	r := wirefmt.NewReader(w.Buf)
	var gotTxn Txn
	var gotValue Value
	TxnFields(r.Coder(), &gotTxn)
	ValueFields(r.Coder(), &gotValue)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(txn, gotTxn) + cmp.Diff(value, gotValue); diff != "" {
		t.Error(diff)
	}
	for n := range w.Buf {
		r := wirefmt.NewReader(w.Buf[:n])
		TxnFields(r.Coder(), &Txn{})
		ValueFields(r.Coder(), &Value{})
		if r.Close() == nil {
			t.Errorf("%d of %d bytes are enough", n, len(w.Buf))
		}
	}
}

// TestLayouts tests what stores have on disk.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("value", valueLayout, Value{Version: Version{300, 2}, Present: true, Bytes: []byte("value")}),
		wiretest.Sample("transaction", txnLayout, Txn{
			ID: Version{300, 2}, Priority: Priority{200, 2}, Reads: []Read{{"a", Version{1, 1}}},
			Writes: []Write{{Key: "b", Bytes: []byte("c")}, {Key: "d", Delete: true}},
		}))
}

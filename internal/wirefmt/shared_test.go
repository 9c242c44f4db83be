package wirefmt_test

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// TestShared: large byte strings are left where they are, and put back make the same bytes.
func TestShared(t *testing.T) {
	codec := wirefmt.NewFormat("test", 7, wirefmt.NewKind[message](1, func(c *wirefmt.Coder, m *[][]byte) {
		wirefmt.List(c, m, 1, wirefmt.Shared)
	}))
	large, small := bytes.Repeat([]byte{1}, 5000), []byte{2}
	m := [][]byte{large, small, large}
	want, err := codec.Append([]byte("x"), m)
	if err != nil {
		t.Fatal(err)
	}
	var refs []protocol.Ref
	buf, refs, err := codec.AppendShared([]byte("x"), refs, m)
	if err != nil || len(refs) != 2 || &refs[0].Data[0] != &large[0] {
		t.Fatalf("%d byte strings are shared, %v", len(refs), err)
	}
	if got := protocol.AppendJoined(nil, buf, refs); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

// TestSharingReader: what is most of the bytes is a part of them, to which nothing can be appended
// in place; a small part would hold the rest.
func TestSharingReader(t *testing.T) {
	var w wirefmt.Writer
	small, large := bytes.Repeat([]byte{1}, 20), bytes.Repeat([]byte{2}, 30)
	w.Bytes(small)
	w.Bytes(large)
	for _, c := range []struct {
		what   string
		r      *wirefmt.Reader
		shares bool
	}{{"a Reader", wirefmt.NewReader(w.Buf), false}, {"a sharing one", wirefmt.NewSharingReader(w.Buf), true}} {
		gotSmall, gotLarge := c.r.Bytes(), c.r.Bytes()
		if err := c.r.Close(); err != nil || !bytes.Equal(gotSmall, small) || !bytes.Equal(gotLarge, large) {
			t.Fatalf("%s: %v, %v, %v", c.what, gotSmall, gotLarge, err)
		}
		if &gotSmall[0] == &w.Buf[1] {
			t.Errorf("%s: the smaller half of the bytes is not copied", c.what)
		}
		if shares := &gotLarge[0] == &w.Buf[22]; shares != c.shares || shares && cap(gotLarge) != len(gotLarge) {
			t.Errorf("%s: the larger half is a part of them: %v, want %v, with a capacity of %d", c.what, shares, c.shares,
				cap(gotLarge))
		}
	}
}

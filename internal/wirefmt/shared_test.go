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

// TestDecodeShared: what is most of the bytes is a part of them, to which nothing can be appended
// in place; a small part would hold the rest.
func TestDecodeShared(t *testing.T) {
	type both struct{ small, large []byte }
	l := wirefmt.NewLayout("test", func(c *wirefmt.Coder, v *both) {
		wirefmt.Bytes(c, &v.small)
		wirefmt.Bytes(c, &v.large)
	})
	small, large := bytes.Repeat([]byte{1}, 20), bytes.Repeat([]byte{2}, 30)
	b := l.Encode(both{small, large})
	for _, c := range []struct {
		what   string
		decode func([]byte) (both, error)
		shares bool
	}{{"Decode", l.Decode, false}, {"DecodeShared", l.DecodeShared, true}} {
		got, err := c.decode(b)
		if err != nil || !bytes.Equal(got.small, small) || !bytes.Equal(got.large, large) {
			t.Fatalf("%s: %v, %v", c.what, got, err)
		}
		if &got.small[0] == &b[1] {
			t.Errorf("%s: the smaller half of the bytes is not copied", c.what)
		}
		if shares := &got.large[0] == &b[22]; shares != c.shares || shares && cap(got.large) != len(got.large) {
			t.Errorf("%s: the larger half is a part of them: %v, want %v, with a capacity of %d", c.what, shares, c.shares,
				cap(got.large))
		}
	}
}

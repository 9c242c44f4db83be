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
	var got []byte
	at := 0
	for _, r := range refs {
		got = append(append(got, buf[at:r.At]...), r.Data...)
		at = r.At
	}
	if got = append(got, buf[at:]...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

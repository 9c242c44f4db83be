package smrtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Codec tests that messages are what they were when they have been encoded and decoded, that none that is cut off is decoded, and that nothing else is encoded.
func Codec(t *testing.T, codec protocol.Codec[smr.Message], messages []smr.Message) {
	t.Helper()
	for _, m := range messages {
		b, err := codec.Append([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.Decode(b[len("before"):])
		if err != nil {
			t.Errorf("%T: %v", m, err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", m, diff)
		}
		for n := range len(b) - len("before") {
			if _, err := codec.Decode(b[len("before") : len("before")+n]); err == nil {
				t.Errorf("%T cut off after %d bytes was decoded", m, n)
			}
		}
	}
	if _, err := codec.Append(nil, 7); err == nil || !strings.Contains(err.Error(), "int is no message") {
		t.Errorf("an int was encoded: %v", err)
	}
}

// FuzzCodec decodes anything, beginning with messages; what can be decoded is encoded to bytes that stand for the same.
func FuzzCodec(f *testing.F, codec protocol.Codec[smr.Message], messages []smr.Message) {
	f.Helper()
	for _, m := range messages {
		b, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := codec.Decode(b)
		if err != nil {
			return
		}
		once, err := codec.Append(nil, m)
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		again, err := codec.Decode(once)
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		if twice, _ := codec.Append(nil, again); !bytes.Equal(once, twice) {
			t.Errorf("%#v becomes %#v", m, again)
		}
	})
}

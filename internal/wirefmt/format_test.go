package wirefmt_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
)

type message any

type sample struct {
	U     uint64
	U32   uint32
	I     int64
	B     bool
	Byte  byte
	Bytes []byte
	S     string
	List  []uint64
	Count int
}

type empty struct{}

func sampleFields(c *wirefmt.Coder, m *sample) {
	wirefmt.Uint(c, &m.U)
	wirefmt.Uint32(c, &m.U32)
	wirefmt.Int(c, &m.I)
	wirefmt.Bool(c, &m.B)
	wirefmt.Enum(c, &m.Byte, 0, 255, "byte")
	wirefmt.Bytes(c, &m.Bytes)
	wirefmt.String(c, &m.S)
	wirefmt.List(c, &m.List, 1, wirefmt.Uint)
	wirefmt.Count(c, &m.Count)
}

func earlierSampleFields(c *wirefmt.Coder, m *sample) { wirefmt.Uint(c, &m.U) }

func emptyFields(*wirefmt.Coder, *empty) {}

func format(version byte) protocol.Codec[message] {
	return wirefmt.NewFormat("test", version,
		wirefmt.NewKind[message](1, sampleFields),
		wirefmt.NewKind[message](2, emptyFields))
}

func samples() []message {
	return []message{
		empty{}, sample{},
		sample{U: math.MaxUint64, U32: math.MaxUint32, I: math.MinInt64, B: true, Byte: 255, Bytes: []byte{0}, S: "ä",
			List: []uint64{0, 1 << 40}, Count: 1 << 31},
	}
}

func TestRoundTrip(t *testing.T) {
	f := format(7)
	for _, m := range samples() {
		b, err := f.Append([]byte("x"), m)
		if err != nil || b[0] != 'x' {
			t.Fatalf("%+v: %v, %q", m, err, b)
		}
		got, err := f.Decode(b[1:])
		if diff := cmp.Diff(m, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if len(b) > 1 {
			clear(b) // what was decoded must not hold a part of it
			if diff := cmp.Diff(m, got); diff != "" {
				t.Errorf("shares memory with its bytes (-want +got):\n%s", diff)
			}
		}
	}
}

func TestErrorsSayWhatAndWhere(t *testing.T) {
	f := format(7)
	good, err := f.Append(nil, samples()[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		bytes []byte
		want  string
	}{
		{"nothing", nil, "message of 0 bytes has no version and kind"},
		{"version only", []byte{7}, "message of 1 bytes"},
		{"another version", []byte{8, 1}, "message of version 8, this program knows version 7"},
		{"another kind", []byte{7, 3}, "message of unknown kind 3"},
		{"more than a message", append(bytes.Clone(good), 1), "sample at byte 45 of 46: 1 bytes too many"},
		{"cut off", good[:len(good)-1], "cut off"},
		{"no truth value", []byte{7, 1, 0, 0, 0, 2}, "2 is no truth value"},
		{"more than 32 bits", []byte{7, 1, 0, 255, 255, 255, 255, 127}, "too large for 32 bits"},
		{"a long byte string", []byte{7, 1, 0, 0, 0, 0, 0, 100, 1}, "100 bytes announced, 1 left"},
		{"a long list", []byte{7, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 3}, "a list of 65535 announced, 0 bytes left"},
		{"a number in two forms", []byte{7, 1, 0x80, 0}, "a number has more bytes than it needs"},
		{"an endless number", []byte{7, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "cut off or too large"},
	} {
		m, err := f.Decode(c.bytes)
		if err == nil || m != nil || !strings.HasPrefix(err.Error(), "test: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.what, m, err, c.want)
		}
	}
	var version *wirefmt.VersionError
	if _, err := f.Decode([]byte{8, 1}); !errors.As(err, &version) || version.Got != 8 || version.Want != 7 {
		t.Errorf("another version: %#v", err)
	}
	if b, err := f.Append([]byte("x"), "text"); err == nil || string(b) != "x" {
		t.Errorf("a string was encoded: %q, %v", b, err)
	}
	if b, err := f.Append(nil, nil); err == nil || len(b) != 0 {
		t.Errorf("nil was encoded: %q, %v", b, err)
	}
}

// TestEarlierKind: messages whose further fields are not set have the bytes that earlier versions
// of a program know, and what these write is understood.
func TestEarlierKind(t *testing.T) {
	earlier := wirefmt.NewKind[message](1, earlierSampleFields)
	old := wirefmt.NewFormat("test", 1, earlier)
	now := wirefmt.NewFormat("test", 1, wirefmt.NewKind[message](3, sampleFields),
		wirefmt.NewEarlierKind[message](1, func(m sample) bool { return m.S == "" }, earlierSampleFields))
	for _, c := range []struct {
		m          sample
		understood bool
	}{{sample{U: 7}, true}, {sample{U: 7, S: "more"}, false}} {
		b, err := now.Append(nil, c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := now.Decode(b); err != nil || cmp.Diff(message(c.m), got) != "" {
			t.Errorf("%+v becomes %+v, %v", c.m, got, err)
		}
		if got, err := old.Decode(b); (err == nil) != c.understood || err == nil && cmp.Diff(message(c.m), got) != "" {
			t.Errorf("an earlier program reads %+v as %+v, %v", c.m, got, err)
		}
	}
	between := wirefmt.NewFormat("test", 1, wirefmt.NewKind[message](4, sampleFields),
		wirefmt.NewEarlierKind[message](1, func(m sample) bool { return m.S == "" && m.U < 8 }, earlierSampleFields),
		wirefmt.NewEarlierKind[message](3, func(m sample) bool { return m.S == "" }, sampleFields))
	for _, c := range []struct {
		m   sample
		tag byte
	}{{sample{U: 7}, 1}, {sample{U: 8}, 3}, {sample{U: 7, S: "more"}, 4}} {
		b, err := between.Append(nil, c.m)
		if err != nil || b[1] != c.tag {
			t.Fatalf("of three layouts %+v has tag %d, %v, want %d", c.m, b[1], err, c.tag)
		}
		if got, err := between.Decode(b); err != nil || cmp.Diff(message(c.m), got) != "" {
			t.Errorf("of three layouts %+v becomes %+v, %v", c.m, got, err)
		}
		b[1] = 4
		if _, err := between.Decode(b); (err == nil) != (c.tag == 4) {
			t.Errorf("%+v is read under a tag under which it is not written: %v", c.m, err)
		}
	}
	b, err := old.Append(nil, sample{U: 9})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := now.Decode(b); err != nil || cmp.Diff(message(sample{U: 9}), got) != "" {
		t.Errorf("what an earlier program writes is read as %+v, %v", got, err)
	}
}

func TestKindsAreDistinct(t *testing.T) {
	kind := func(tag byte) wirefmt.Kind[message] {
		return wirefmt.NewKind[message](tag, emptyFields)
	}
	other := wirefmt.NewKind[message](1, sampleFields)
	for _, kinds := range [][]wirefmt.Kind[message]{{kind(1), kind(2)}, {kind(1), other},
		{other, wirefmt.NewEarlierKind[message](1, func(sample) bool { return true }, sampleFields)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("two kinds share a tag or a type, and nobody minds")
				}
			}()
			wirefmt.NewFormat("test", 1, kinds...)
		}()
	}
}

func TestReaderKeepsItsFirstError(t *testing.T) {
	r := wirefmt.NewReader([]byte{1, 2, 3})
	r.Failf("first")
	if r.Uint() != 0 || r.Byte() != 0 || r.Bytes() != nil || r.List(1) != 0 || r.Rest() != nil || r.String() != "" {
		t.Error("something was read after an error")
	}
	r.Failf("second")
	if err := r.Close(); err == nil || err.Error() != "at byte 0 of 3: first" {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) { wiretest.Fuzz(f, format(7), samples()) }

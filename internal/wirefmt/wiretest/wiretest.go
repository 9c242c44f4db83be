// Package wiretest tests codecs.
package wiretest

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// Golden is where a package has the bytes of its messages written down.
const Golden = "testdata/wire.golden"

// GoldenLayouts is where a package has the bytes of values that stand alone.
const GoldenLayouts = "testdata/layouts.golden"

// Codec tests a codec on samples of all its kinds whose tags are at least first:
//
//   - a sample is what it was when it has been encoded and decoded;
//   - nothing that is cut off is decoded, nothing that is no message encoded;
//   - a message has one form: bytes that differ a little from a sample's are refused, or they are
//     all that the message they stand for can be written as, so that a signature covers it;
//   - a sample can be written for people;
//   - the bytes are those of the package's file [Golden], so that a review shows when a layout
//     changes. FORESAY_UPDATE=1 writes that file.
//
// The options say how samples are compared.
func Codec[M any](t *testing.T, codec protocol.Codec[M], first byte, samples []M, options ...cmp.Option) {
	t.Helper()
	var golden strings.Builder
	missing := codec.(interface{ Kinds() map[byte]string }).Kinds()
	for _, m := range samples {
		b, err := codec.Append([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("before"):]
		delete(missing, b[1])
		if text := msgtext.Format(nil).Of(m); text == "" { // which panics, or does not end, if it cannot be
			t.Errorf("%T has no text", m)
		}
		fmt.Fprintf(&golden, "%T %x\n", m, b)
		own := cmp.Exporter(func(part reflect.Type) bool { return part.PkgPath() == reflect.TypeOf(m).PkgPath() })
		roundTrip(t, codec, m, b, append(slices.Clip(options), cmpopts.EquateEmpty(), own))
		for changed := range neighbours(b) {
			oneForm(t, codec, changed)
		}
	}
	for tag, name := range missing {
		if tag >= first {
			t.Errorf("there is no sample of %s with tag %d", name, tag)
		}
	}
	if m, ok := any(7).(M); ok {
		if _, err := codec.Append(nil, m); err == nil || !strings.Contains(err.Error(), "int is no message") {
			t.Errorf("an int was encoded: %v", err)
		}
	}
	compare(t, Golden, golden.String())
}

func roundTrip[M any](t *testing.T, codec protocol.Codec[M], m M, b []byte, options cmp.Options) {
	t.Helper()
	got, err := codec.Decode(b)
	if err != nil {
		t.Errorf("%T: %v", m, err)
	}
	if diff := cmp.Diff(m, got, options); diff != "" {
		t.Errorf("%T (-want +got):\n%s", m, diff)
	}
	for n := range b {
		if _, err := codec.Decode(b[:n]); err == nil {
			t.Errorf("%T cut off after %d bytes was decoded", m, n)
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("FORESAY_UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the bytes of messages are not those of %s: programs of other versions may not read them "+
			"(FORESAY_UPDATE=1 writes the file):\n%s", file, diff)
	}
}

// neighbours yields bytes that differ a little from b, in the ways in which a lenient decoder would
// still read them: other values of a byte, a byte twice or left out, and numbers that are longer
// than they need to be. What it yields is good until it goes on.
func neighbours(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		changed := make([]byte, 0, len(b)+1)
		for i, v := range b {
			for _, in := range [][]byte{
				{}, {v, v}, {v, 0}, {v | 0x80, 0}, {v | 0x80, 1}, {0}, {v + 1}, {v - 1},
				{v ^ 1<<1}, {v ^ 1<<2}, {v ^ 1<<3}, {v ^ 1<<4}, {v ^ 1<<5}, {v ^ 1<<6}, {v ^ 1<<7},
			} {
				changed = append(append(append(changed[:0], b[:i]...), in...), b[i+1:]...)
				if !yield(changed) {
					return
				}
			}
		}
	}
}

// oneForm tests that what can be decoded has no other bytes than those that were decoded.
func oneForm[M any](t *testing.T, codec protocol.Codec[M], b []byte) {
	t.Helper()
	m, err := codec.Decode(b)
	if err != nil {
		return
	}
	if again, err := codec.Append(nil, m); err != nil || !bytes.Equal(b, again) {
		t.Errorf("%x is decoded to %#v, which is encoded to %x (%v)", b, m, again, err)
	}
}

// Fuzz decodes anything, beginning with the samples. What can be decoded has no other bytes than
// those that were decoded.
func Fuzz[M any](f *testing.F, codec protocol.Codec[M], samples []M) {
	f.Helper()
	for _, m := range samples {
		b, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { oneForm(t, codec, b) })
}

// Tags tests that messages have these tags: that they are written as earlier versions of the
// program know them, unless they have what these do not know.
func Tags[M any](t *testing.T, codec protocol.Codec[M], messages map[byte]M) {
	t.Helper()
	for tag, m := range messages {
		if b, err := codec.Append(nil, m); err != nil || b[1] != tag {
			t.Errorf("%+v is written as %x, want the tag %d (%v)", m, b, tag, err)
		}
	}
}

// A Value is a sample of a layout: see [Layouts].
type Value struct {
	name string
	test func(t *testing.T) []byte // returns its bytes
}

// Sample is a value whose layout is to be tested. The options say how values are compared.
func Sample[T any](name string, l *wirefmt.Layout[T], v T, options ...cmp.Option) Value {
	return Value{name, func(t *testing.T) []byte {
		b := l.Encode(v)
		got, err := l.Decode(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(v, got, append(options, cmpopts.EquateEmpty())...); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for n := range b {
			if _, err := l.Decode(b[:n]); err == nil {
				t.Errorf("%s cut off after %d bytes was decoded", name, n)
			}
		}
		for changed := range neighbours(b) {
			if v, err := l.Decode(changed); err == nil {
				if again := l.Encode(v); !bytes.Equal(changed, again) {
					t.Fatalf("%s: %x is decoded to %#v, which is encoded to %x", name, changed, v, again)
				}
			}
		}
		return b
	}}
}

// Layouts tests layouts on samples, as Codec does messages. Their bytes are those of the package's
// file [GoldenLayouts].
func Layouts(t *testing.T, samples ...Value) {
	t.Helper()
	var golden strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&golden, "%s %x\n", s.name, s.test(t))
	}
	compare(t, GoldenLayouts, golden.String())
}

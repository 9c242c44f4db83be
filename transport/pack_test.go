package transport

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/protocol"
)

func TestPack(t *testing.T) {
	var buf []byte
	type message struct {
		from Addr
		to   protocol.ID
		text string
	}
	messages := []message{
		{Addr{0, 1}, 2, "hello"}, {Addr{1<<32 - 1, 1<<32 - 1}, 1<<32 - 1, ""},
		{Addr{300, 70000}, 3, string(make([]byte, 1000))},
	}
	for _, m := range messages {
		before := len(buf)
		buf = pack(buf, m.from, m.to, []byte(m.text))
		if extra := len(buf) - before - len(m.text); extra > maxHeaderBytes {
			t.Errorf("%d bytes before a message, more than %d", extra, maxHeaderBytes)
		}
	}
	for _, m := range messages {
		from, to, payload, rest, err := unpack(buf)
		if err != nil || from != m.from.ID || to != (Addr{m.from.Group, m.to}) || string(payload) != m.text {
			t.Fatalf("got %q from %d to %v, %v, want %+v", payload, from, to, err, m)
		}
		buf = rest
	}
	if len(buf) > 0 {
		t.Errorf("%d bytes left", len(buf))
	}
}

// What unpack takes for messages says the same when it is packed again.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{0, 1, 2, 2, 'h', 'i', 3, 4, 5, 0})
	f.Add([]byte{0, 1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			from, to, payload, rest, err := unpack(b)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatalf("%d bytes left of %d", len(rest), len(b))
			}
			again := pack(nil, Addr{to.Group, from}, to.ID, payload)
			from2, to2, payload2, rest2, err := unpack(again)
			if err != nil || from2 != from || to2 != to || !bytes.Equal(payload2, payload) || len(rest2) > 0 {
				t.Fatalf("%x became %x: %v", b, again, err)
			}
			b = rest
		}
	})
}

// A source that gets anything hands on what it can read, to whom it is for, and never panics.
func FuzzTake(f *testing.F) {
	f.Add(uint64(0), []byte{0, 1, 2, 2, 'h', 'i', 0, 1, 9, 0})
	f.Add(uint64(5), []byte{0, 1, 2, 2, 'h', 'i', 0, 3, 2, 0, 7})
	f.Fuzz(func(t *testing.T, first uint64, b []byte) {
		tr, err := New(Config{Cluster: "fuzz", IDs: []protocol.ID{2}, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		got := new(countingSink)
		if _, err := tr.Open(Addr{ID: 2}, got); err != nil {
			t.Fatal(err)
		}
		s := tr.newSource()
		s.begin(func(id protocol.ID) error { return tr.cfg.maySpeakFor(nil, id) })
		next := first
		for range 2 {
			if s.take(tr, next, b) != nil {
				break
			}
			next = s.next
		}
		want := tr.received.Load() - tr.undeliverable.Load()
		if got.messages > want || got.messages < want-min(want, 1) { // one may be refused for its sender
			t.Errorf("%d messages handed on of %d that can be", got.messages, want)
		}
		if first > 0 && got.messages > 0 && got.broken == 0 {
			t.Error("nobody was told that the first messages are lost")
		}
	})
}

type countingSink struct{ messages, broken uint64 }

// Receive counts messages.
func (s *countingSink) Receive(msgs []Inbound) { s.messages += uint64(len(msgs)) }

// Broken counts itself.
func (s *countingSink) Broken(protocol.ID) { s.broken++ }

// TestBuffers: buffers have the length that was asked for, and those that are kept room for all
// that is asked of their size.
func TestBuffers(t *testing.T) {
	p := new(buffers)
	for length := 0; length < 3<<maxBufferBits; length = length*5/4 + 1 {
		b := p.Get(length)
		if len(*b) != length {
			t.Fatalf("a buffer of %d bytes, want %d", len(*b), length)
		}
		*b = (*b)[:length/2] // what gRPC gives back may be a prefix
		p.Put(b)
		for _, more := range []int{length, length + 1} {
			if b := p.Get(more); len(*b) != more {
				t.Fatalf("a buffer of %d bytes, want %d", len(*b), more)
			}
		}
	}
	small := make([]byte, 10)
	p.Put(&small)
	odd := make([]byte, 1000) // has room for all of 512 bytes only
	p.Put(&odd)
	for _, length := range []int{1, 256, 512, 513, 1000, 1024} {
		if b := p.Get(length); len(*b) != length {
			t.Errorf("a buffer of %d bytes, want %d", len(*b), length)
		}
	}
}

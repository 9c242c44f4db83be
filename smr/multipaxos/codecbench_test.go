package multipaxos

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// BenchmarkCodec encodes and decodes what a leader sends in one message under load.
func BenchmarkCodec(b *testing.B) {
	m := accept{Ballot: 1<<32 | 1, First: 1 << 20, Commit: 1<<20 - 1, Round: 8}
	for i := range kit.Seq(16) {
		m.Entries = append(m.Entries, kit.Entry{Kind: kit.Command, Client: 7, Session: 3, Seq: 1<<20 + i, Acked: 1 << 20,
			Command: bytes.Repeat([]byte("x"), 100)})
	}
	codec := codec()
	var msg smr.Message = kit.Letter{Disk: 1 << 60, Msg: m}
	encoded, err := codec.Append(nil, msg)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := encoded[:0:0]
		for b.Loop() {
			if buf, err = codec.Append(buf[:0], msg); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := codec.Decode(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
	var small smr.Message = kit.Letter{Disk: 1 << 60, Msg: accepted{Ballot: 1<<32 | 1, Match: 1 << 20}}
	short, _ := codec.Append(nil, small)
	b.Run("encode small", func(b *testing.B) {
		b.ReportAllocs()
		buf := encoded[:0:0]
		for b.Loop() {
			buf, _ = codec.Append(buf[:0], small)
		}
	})
	b.Run("decode small", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = codec.Decode(short)
		}
	})
}

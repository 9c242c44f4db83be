package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	peerv1 "github.com/foresay/foresay/api/foresay/peer/v1"
	"github.com/foresay/foresay/protocol"
)

// TestFramesWithSharedBytes: frames are protobuf's, wherever messages share bytes, which are not
// copied; and what was received is what was sent.
func TestFramesWithSharedBytes(t *testing.T) {
	codec := newFrameCodec()
	random := rand.New(rand.NewPCG(1, 2))
	some := func(most int) []byte {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	for range 200 {
		o := newOutbox(&Config{MaxAge: time.Hour, QueueMessages: 100, QueueBytes: 1 << 20}, random.Uint64N(3))
		var want []byte
		shared := map[*byte]bool{}
		port := &Port{addr: Addr{Group: 3, ID: 4}}
		for range 1 + random.IntN(5) {
			payload := some(300)
			var refs []protocol.Ref
			for at := 0; at <= len(payload) && random.IntN(3) > 0; at += random.IntN(len(payload) + 1) {
				data := append(some(5000), 1)
				shared[&data[0]] = true
				refs = append(refs, protocol.Ref{At: at, Data: data})
			}
			o.push(port, 9, payload, refs)
			want = pack(want, port.addr, 9, protocol.AppendJoined(nil, payload, refs))
		}
		b, _ := o.pop()
		if o.bytes != 0 || b.size != len(want) {
			t.Fatalf("a batch of %d bytes counts as %d, and leaves %d", len(want), b.size, o.bytes)
		}
		out, err := codec.Marshal(&b)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range out {
			if data := part.ReadOnlyData(); len(data) > 0 {
				delete(shared, &data[0])
			}
		}
		if len(shared) > 0 {
			t.Fatalf("%d byte strings were copied", len(shared))
		}
		var frame peerv1.Frame
		if err := proto.Unmarshal(out.Materialize(), &frame); err != nil || frame.GetFirst() != b.first ||
			!bytes.Equal(frame.GetMessages(), want) {
			t.Fatalf("protobuf reads another frame: %v", err)
		}
		var got received
		if err := codec.Unmarshal(out, &got); err != nil || got.greets || got.first != b.first ||
			!bytes.Equal(got.messages, want) {
			t.Fatalf("another frame was received: %v", err)
		}
		got.free()
		out.Free()
	}
}

// TestFramesThatAreNone: a frame that cannot be read is an error, and a greeting is told from
// messages.
func TestFramesThatAreNone(t *testing.T) {
	codec := newFrameCodec()
	hello, err := codec.Marshal(&peerv1.Frame{Hello: &peerv1.Hello{Cluster: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	var got received
	if err := codec.Unmarshal(hello, &got); err != nil || !got.greets {
		t.Errorf("a hello: %v, greets %v", err, got.greets)
	}
	for _, b := range [][]byte{{0x22, 5, 1}, {0x18}, {0xff}, {0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		1}} {
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &got); err == nil {
			t.Errorf("%x was read as %+v", b, got)
		}
	}
}

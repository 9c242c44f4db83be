package transport

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/foresay/foresay/protocol"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frameCodec is gRPC's codec, and a quicker one for frames with messages, whose bytes it does not
// copy but for the small ones. On the wire both are the same.
type frameCodec struct{ encoding.CodecV2 }

func newFrameCodec() frameCodec { return frameCodec{encoding.GetCodecV2("proto")} }

// The fields of peerv1.Frame.
const (
	fieldFirst    protowire.Number = 3
	fieldMessages protowire.Number = 4
	// frameHeadBytes is more than what stands before a frame's messages.
	frameHeadBytes = 32
)

// Marshal is part of encoding.CodecV2. What the batch refers to is gRPC's until it has sent it; the
// rest is the caller's again.
func (c frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*batch)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	own := frameBuffers.Get(frameHeadBytes + len(b.bytes))
	head := protowire.AppendVarint(protowire.AppendTag((*own)[:0], fieldFirst, protowire.VarintType), b.first)
	head = protowire.AppendVarint(protowire.AppendTag(head, fieldMessages, protowire.BytesType), uint64(b.size))
	shift := len(head)
	*own = append(head, b.bytes...)
	if len(b.refs) == 0 {
		return mem.BufferSlice{mem.NewBuffer(own, frameBuffers)}, nil
	}
	whole := mem.NewBuffer(own, frameBuffers)
	defer whole.Free() // its parts hold it
	var out mem.BufferSlice
	at := 0
	for _, r := range b.refs {
		if end := shift + r.At; end > at {
			out = append(out, whole.Slice(at, end))
			at = end
		}
		out = append(out, mem.SliceBuffer(r.Data))
	}
	if at < len(*own) {
		out = append(out, whole.Slice(at, len(*own)))
	}
	return out, nil
}

// received is a frame with messages that has come.
type received struct {
	first    uint64
	messages []byte
	greets   bool // it is a Hello or a Welcome
	buffer   mem.Buffer
}

// free gives the frame's memory back. It must not be used any more.
func (f *received) free() {
	if f.buffer != nil {
		f.buffer.Free()
	}
	*f = received{}
}

// Unmarshal is part of encoding.CodecV2.
func (c frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*received)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	f.free()
	f.buffer = data.MaterializeToBuffer(frameBuffers)
	if err := f.parse(f.buffer.ReadOnlyData()); err != nil {
		f.free()
		return err
	}
	return nil
}

func (f *received) parse(b []byte) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("transport: a frame's field: %w", protowire.ParseError(n))
		}
		b = b[n:]
		switch {
		case number == fieldFirst && kind == protowire.VarintType:
			f.first, n = protowire.ConsumeVarint(b)
		case number == fieldMessages && kind == protowire.BytesType:
			f.messages, n = protowire.ConsumeBytes(b)
		default:
			f.greets = f.greets || number < fieldFirst
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("transport: field %d of a frame: %w", number, protowire.ParseError(n))
		}
		b = b[n:]
	}
	return nil
}

// A packed message is its group, sender, receiver and length as varints, and its bytes.

func pack(buf []byte, from Addr, to protocol.ID, payload []byte) []byte {
	return append(packHead(buf, from, to, len(payload)), payload...)
}

func packHead(buf []byte, from Addr, to protocol.ID, sizeBytes int) []byte {
	buf = binary.AppendUvarint(buf, uint64(from.Group))
	buf = binary.AppendUvarint(buf, uint64(from.ID))
	buf = binary.AppendUvarint(buf, uint64(to))
	return binary.AppendUvarint(buf, uint64(sizeBytes))
}

// unpack takes the first message from b. The payload is a part of b.
func unpack(b []byte) (from protocol.ID, to Addr, payload, rest []byte, err error) {
	var fields [4]uint64
	rest = b
	for i := range fields {
		v, n := binary.Uvarint(rest)
		if n <= 0 || v > math.MaxUint32 {
			return 0, Addr{}, nil, nil, fmt.Errorf("field %d of a message is cut off or too large", i)
		}
		fields[i], rest = v, rest[n:]
	}
	size := fields[3]
	if size > uint64(len(rest)) {
		return 0, Addr{}, nil, nil, fmt.Errorf("a message of %d bytes announced, %d left", size, len(rest))
	}
	return protocol.ID(fields[1]), Addr{Group(fields[0]), protocol.ID(fields[2])}, rest[:size:size], rest[size:], nil
}

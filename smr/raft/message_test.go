package raft

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// messages are of all kinds that replicas send or record.
func messages() []smr.Message {
	entries := []*raftpb.Entry{
		{Type: raftpb.EntryNormal.Enum(), Term: new(uint64(3)), Index: new(uint64(9)), Data: []byte("x")},
		{Type: raftpb.EntryConfChange.Enum(), Term: new(uint64(3)), Index: new(uint64(10))},
	}
	full := new(raftpb.Message)
	fill(full.ProtoReflect())
	return []smr.Message{
		record{hard: hardState{term: 3, vote: 1, commit: 9}},
		record{hard: hardState{term: 3}, entries: entries},
		rpc{&raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), From: new(uint64(1)), Term: new(uint64(3)),
			Entries: entries}},
		rpc{&raftpb.Message{Type: raftpb.MsgHup.Enum()}},
		rpc{&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), Index: new(uint64), Reject: new(bool)}},
		rpc{full},
		page{Copy: 300, Number: 1, Writes: []pageWrite{
			{Key: []byte("k"), Value: []byte("v")}, {Key: []byte("l"), Deleted: true},
		}},
		page{Copy: 300, Number: 2, End: &pageEnd{At: Position{9, 3}, Members: []byte("m")}},
		paged{Copy: 300, Have: 2},
	}
}

// fill sets all fields that are sent, so that a field which the library gets in a later version and
// the codec does not have is missed.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch number := protoreflect.ValueOfUint64(uint64(100 + i)); {
		case f.Name() == "responses": // for the replica's own storage
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			fill(m.Mutable(f).List().AppendMutable().Message())
		case f.IsList():
			m.Mutable(f).List().Append(number)
		case f.Kind() == protoreflect.MessageKind:
			fill(m.Mutable(f).Message())
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte(f.Name())))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		default:
			m.Set(f, number)
		}
	}
}

func TestCodec(t *testing.T) {
	wiretest.Codec(t, Protocol().Codec, 64, messages(), protocmp.Transform(),
		cmp.AllowUnexported(rpc{}, record{}, hardState{}))
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, Protocol().Codec, messages()) }

// BenchmarkCodec encodes and decodes a message of a leader with entries of 100 bytes: as replicas
// do, and as the code does that is generated for the library's protocol buffers.
func BenchmarkCodec(b *testing.B) {
	codec := Protocol().Codec
	for _, n := range []uint64{0, 1, 16} {
		m := &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), From: new(uint64(1)), Term: new(uint64(3)), LogTerm: new(uint64(3)),
			Index: new(uint64(1 << 20)), Commit: new(uint64(1<<20 - 1)),
		}
		for i := range n {
			m.Entries = append(m.Entries, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: new(uint64(3)),
				Index: new(1<<20 + i), Data: make([]byte, 100)})
		}
		own, err := codec.Append(nil, rpc{m})
		if err != nil {
			b.Fatal(err)
		}
		generated, err := proto.Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			what  string
			bytes int
			code  func() error
		}{
			{"own/encode", len(own), func() (err error) { own, err = codec.Append(own[:0], rpc{m}); return }},
			{"generated/encode", len(generated), func() (err error) {
				generated, err = proto.MarshalOptions{}.MarshalAppend(generated[:0], m)
				return
			}},
			{"own/decode", len(own), func() error { _, err := codec.Decode(own); return err }},
			{"generated/decode", len(generated), func() error { return proto.Unmarshal(generated, new(raftpb.Message)) }},
		} {
			b.Run(fmt.Sprintf("entries=%d/%s", n, c.what), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := c.code(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(c.bytes), "bytes")
			})
		}
	}
}

// TestLayouts tests what is in front of snapshots, and in the library's entries.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("front", frontLayout, front{term: 300, voters: []uint64{1, 2, 300}, stateBytes: 500},
			cmp.AllowUnexported(front{})),
		wiretest.Sample("entry", entryLayout, kit.Entry{
			Kind: kit.Command, Client: 300, Session: 4, Seq: 5, Acked: 2, Command: []byte("command"),
		}),
		wiretest.Sample("head of a part", headLayout, head{applied: Position{300, 4}, cut: Position{200, 3}, area: 2},
			cmp.AllowUnexported(head{})),
		wiretest.Sample("copy that arrives", arrivingLayout, arriving{copy: 300, have: 4, area: 2},
			cmp.AllowUnexported(arriving{})))
}

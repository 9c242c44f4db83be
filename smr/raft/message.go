package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
)

// rpc is a message of the library, to another replica or to oneself.
type rpc struct {
	disk smr.Incarnation // the sender's
	*raftpb.Message
}

// record is what one write puts into the log: the state that must not be forgotten, and the entries that follow, or replace, those before.
type record struct {
	hard    hardState
	entries []*raftpb.Entry
}

// Tags of the format. Those of smr's own messages are below 64.
const (
	tagRPC    = 64
	tagRecord = 65
)

func kinds() []wirefmt.Kind[smr.Message] {
	return []wirefmt.Kind[smr.Message]{
		wirefmt.NewKind[smr.Message](tagRPC, encodeRPC, decodeRPC),
		wirefmt.NewKind[smr.Message](tagRecord, encodeRecord, decodeRecord),
	}
}

func encodeRPC(w *wirefmt.Writer, m rpc) {
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(nil, m.Message)
	if err != nil {
		panic(fmt.Sprintf("raft: a message that we made cannot be encoded: %v", err))
	}
	w.Uint(uint64(m.disk))
	w.Shared(b)
}

func decodeRPC(r *wirefmt.Reader) rpc {
	disk, m := smr.Incarnation(r.Uint()), new(raftpb.Message)
	if err := proto.Unmarshal(r.View(), m); err != nil {
		r.Failf("raft message: %w", err)
	}
	return rpc{disk, m}
}

func encodeRecord(w *wirefmt.Writer, rec record) {
	w.Uint(rec.hard.term)
	w.Uint(rec.hard.vote)
	w.Uint(rec.hard.commit)
	w.List(len(rec.entries))
	for _, e := range rec.entries {
		w.Uint(uint64(e.GetType()))
		w.Uint(e.GetTerm())
		w.Uint(e.GetIndex())
		w.Shared(e.GetData())
	}
}

func decodeRecord(r *wirefmt.Reader) record {
	rec := record{hard: hardState{r.Uint(), r.Uint(), r.Uint()}}
	n := r.List(4)
	for range n {
		kind, term, index := raftpb.EntryType(r.Uint32()), r.Uint(), r.Uint()
		rec.entries = append(rec.entries, &raftpb.Entry{Type: &kind, Term: &term, Index: &index, Data: r.Bytes()})
	}
	return rec
}

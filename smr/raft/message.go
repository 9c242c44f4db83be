package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
)

// rpc is a message of the library, to another replica or to oneself.
type rpc struct{ *raftpb.Message }

// record is what one write puts into the log: the state that must not be forgotten, and the entries
// that follow, or replace, those before.
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
		wirefmt.NewKind[smr.Message](tagRPC, rpcFields),
		wirefmt.NewKind[smr.Message](tagRecord, recordFields),
	}
}

func rpcFields(c *wirefmt.Coder, m *rpc) {
	var b []byte
	if !c.Reading() {
		var err error
		if b, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(nil, m.Message); err != nil {
			panic(fmt.Sprintf("raft: a message that we made cannot be encoded: %v", err))
		}
	}
	wirefmt.View(c, &b)
	if c.Reading() {
		m.Message = new(raftpb.Message)
		if err := proto.Unmarshal(b, m.Message); err != nil {
			c.Failf("raft message: %w", err)
		}
	}
}

func recordFields(c *wirefmt.Coder, rec *record) {
	wirefmt.Uint(c, &rec.hard.term)
	wirefmt.Uint(c, &rec.hard.vote)
	wirefmt.Uint(c, &rec.hard.commit)
	wirefmt.List(c, &rec.entries, 4, func(c *wirefmt.Coder, e **raftpb.Entry) {
		if c.Reading() {
			*e = &raftpb.Entry{Type: new(raftpb.EntryType), Term: new(uint64), Index: new(uint64)}
		}
		entryType, term, index := uint32((*e).GetType()), (*e).GetTerm(), (*e).GetIndex()
		wirefmt.Uint32(c, &entryType)
		wirefmt.Uint(c, &term)
		wirefmt.Uint(c, &index)
		wirefmt.Shared(c, &(*e).Data)
		if c.Reading() {
			*(*e).Type, *(*e).Term, *(*e).Index = raftpb.EntryType(entryType), term, index
		}
	})
}

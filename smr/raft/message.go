package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
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

// Text writes what a message says, to whom being said elsewhere.
func (m rpc) Text(f msgtext.Format) string {
	fields := struct {
		Term, LogTerm, Index, Commit uint64
		Reject                       bool
		RejectHint                   uint64
		Entries                      []kit.Entry
		Snapshot                     bool
	}{
		m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetReject(), m.GetRejectHint(), nil, m.GetSnapshot() != nil,
	}
	for _, e := range m.GetEntries() {
		fields.Entries = append(fields.Entries, shown(e))
	}
	return m.GetType().String() + " " + f.Fields(fields)
}

// shown returns what is agreed on in an entry of the library, for people: a no-op if that cannot be
// read.
func shown(e *raftpb.Entry) kit.Entry {
	data := e.GetData()
	if e.GetType() == raftpb.EntryConfChange {
		var cc raftpb.ConfChange
		if proto.Unmarshal(data, &cc) == nil {
			data = cc.GetContext()
		}
	}
	if entry, err := decodeEntry(data); err == nil {
		return entry
	}
	return kit.Entry{Kind: kit.NoOp}
}

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

package raft

import (
	"math/bits"

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
	tagRecord = 65
	tagRPC    = 66
	tagPage   = 67
	tagPaged  = 68
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
		m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetReject(), m.GetRejectHint(), nil,
		m.GetSnapshot() != nil,
	}
	fields.Entries = allShown(m.GetEntries())
	return m.GetType().String() + " " + f.Fields(fields)
}

// Text writes what a record says.
func (r record) Text(f msgtext.Format) string {
	return "Record " + f.Fields(struct {
		Term, Vote, Commit uint64
		Entries            []kit.Entry
	}{r.hard.term, r.hard.vote, r.hard.commit, allShown(r.entries)})
}

func allShown(entries []*raftpb.Entry) (all []kit.Entry) {
	for _, e := range entries {
		all = append(all, shown(e))
	}
	return all
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
	if entry, err := entryLayout.DecodeShared(data); err == nil {
		return entry
	}
	return kit.Entry{Kind: kit.NoOp}
}

func kinds() []wirefmt.Kind[smr.Message] {
	return []wirefmt.Kind[smr.Message]{
		wirefmt.NewKind[smr.Message](tagRecord, recordFields),
		wirefmt.NewKind[smr.Message](tagRPC, rpcFields),
		wirefmt.NewKind[smr.Message](tagPage, pageFields), wirefmt.NewKind[smr.Message](tagPaged, pagedFields),
	}
}

// rpcFields are the library's, which tell a field that is 0 from one that is not set. Responses are
// for the replica's own storage, and in no message.
func rpcFields(c *wirefmt.Coder, m *rpc) {
	if c.Reading() {
		m.Message = &raftpb.Message{Type: new(raftpb.MessageType)}
	} else if len(m.Responses) > 0 {
		panic("raft: a message for the storage was sent")
	}
	x := m.Message
	kind, rejects, rejected, installs := uint32(x.GetType()), x.Reject != nil, x.GetReject(), x.Snapshot != nil
	wirefmt.Uint32(c, &kind)
	numbersFields(c, &x.To, &x.From, &x.Term, &x.LogTerm, &x.Index, &x.Commit, &x.Vote, &x.RejectHint)
	if wirefmt.Bool(c, &rejects); rejects {
		wirefmt.Bool(c, &rejected)
	}
	wirefmt.Bytes(c, &x.Context)
	wirefmt.List(c, &x.Entries, 4, entryFields)
	wirefmt.Bool(c, &installs)
	if c.Reading() {
		*x.Type = raftpb.MessageType(kind)
		if rejects {
			x.Reject = new(rejected)
		}
		if installs {
			x.Snapshot = new(raftpb.Snapshot)
		}
	}
	if installs {
		snapshotFields(c, x.Snapshot)
	}
}

// numbersFields are at most eight numbers, and which of them are set.
func numbersFields(c *wirefmt.Coder, numbers ...**uint64) {
	var set uint64
	for i, n := range numbers {
		if *n != nil {
			set |= 1 << i
		}
	}
	wirefmt.Uint(c, &set)
	if set >= 1<<len(numbers) {
		c.Failf("%b are no %d numbers", set, len(numbers))
		return
	}
	if c.Reading() {
		values := make([]uint64, bits.OnesCount64(set)) // one piece of memory for all
		for i, n := range numbers {
			if set&(1<<i) != 0 {
				*n, values = &values[0], values[1:]
			}
		}
	}
	for _, n := range numbers {
		if *n != nil {
			wirefmt.Uint(c, *n)
		}
	}
}

func snapshotFields(c *wirefmt.Coder, s *raftpb.Snapshot) {
	s.Metadata = raftpb.EnsureSnapshotMetadata(s.Metadata)
	conf := s.Metadata.ConfState
	wirefmt.Bytes(c, &s.Data)
	wirefmt.Uint(c, s.Metadata.Index)
	wirefmt.Uint(c, s.Metadata.Term)
	for _, ids := range []*[]uint64{&conf.Voters, &conf.Learners, &conf.VotersOutgoing, &conf.LearnersNext} {
		wirefmt.List(c, ids, 1, wirefmt.Uint)
	}
	wirefmt.Bool(c, conf.AutoLeave)
}

func recordFields(c *wirefmt.Coder, rec *record) {
	wirefmt.Uint(c, &rec.hard.term)
	wirefmt.Uint(c, &rec.hard.vote)
	wirefmt.Uint(c, &rec.hard.commit)
	wirefmt.List(c, &rec.entries, 4, entryFields)
}

func entryFields(c *wirefmt.Coder, e **raftpb.Entry) {
	if c.Reading() {
		var all struct { // one piece of memory
			entry       raftpb.Entry
			kind        raftpb.EntryType
			term, index uint64
		}
		*e = &all.entry
		all.entry.Type, all.entry.Term, all.entry.Index = &all.kind, &all.term, &all.index
	}
	kind, term, index := uint32((*e).GetType()), (*e).GetTerm(), (*e).GetIndex()
	wirefmt.Uint32(c, &kind)
	wirefmt.Uint(c, &term)
	wirefmt.Uint(c, &index)
	wirefmt.Shared(c, &(*e).Data)
	if c.Reading() {
		*(*e).Type, *(*e).Term, *(*e).Index = raftpb.EntryType(kind), term, index
	}
}

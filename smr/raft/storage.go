package raft

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// storage is the part of the log that the library may forget and ask for again. All of it is in
// memory; what makes it durable are the records that core appends.
type storage struct {
	hard    hardState
	voters  []uint64
	entries []*raftpb.Entry // Invariant: entries[i] has the index prior.index+1+i.
	records []uint64        // Invariant: the record that holds entries[i] has the index records[i].
	prior   position        // of the entry before the first: what the snapshot covers
	// snapshot is the newest one, without its data; nil if there is none but the beginning.
	snapshot *raftpb.Snapshot
	wanted   bool // the library asked for a snapshot that is not there
	// changed says that the members are others than when the snapshot was made: a new one does not
	// take a snapshot that does not know it.
	changed bool
	// change is the index of the last entry that changes the members; it may have been replaced since.
	change uint64
	// now says what a state would be of that is sent now, if there are no snapshots; it may be nil
	now func() *raftpb.SnapshotMetadata
}

// position names an entry.
type position struct{ index, term uint64 }

// InitialState is part of raft.Storage, like all exported methods.
func (s *storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	h := &raftpb.HardState{Term: new(s.hard.term), Vote: new(s.hard.vote), Commit: new(s.hard.commit)}
	return h, &raftpb.ConfState{Voters: s.voters}, nil
}

// Entries returns entries from lo up to, not including, hi, at least one and else not more bytes
// than maxSizeBytes.
func (s *storage) Entries(lo, hi, maxSizeBytes uint64) ([]*raftpb.Entry, error) {
	switch {
	case lo <= s.prior.index:
		return nil, raft.ErrCompacted
	case hi > s.last()+1 || lo > hi:
		return nil, fmt.Errorf("raft: asked for entries %d to %d of a log that ends at %d: %w", lo, hi, s.last(),
			raft.ErrUnavailable)
	}
	all := s.entries[lo-s.prior.index-1 : hi-s.prior.index-1]
	var sum uint64
	for i, e := range all {
		sum += uint64(proto.Size(e))
		if sum > maxSizeBytes && i > 0 {
			return all[:i:i], nil
		}
	}
	return all[:len(all):len(all)], nil
}

// Term returns the term of an entry.
func (s *storage) Term(i uint64) (uint64, error) {
	switch {
	case i == s.prior.index:
		return s.prior.term, nil
	case i < s.prior.index:
		return 0, raft.ErrCompacted
	case i > s.last():
		return 0, raft.ErrUnavailable
	}
	return s.entries[i-s.prior.index-1].GetTerm(), nil
}

// LastIndex returns the index of the last entry.
func (s *storage) LastIndex() (uint64, error) { return s.last(), nil }

// FirstIndex returns the index of the first entry that is kept.
func (s *storage) FirstIndex() (uint64, error) { return s.prior.index + 1, nil }

// Snapshot returns the newest snapshot, without its data.
func (s *storage) Snapshot() (*raftpb.Snapshot, error) {
	if s.now != nil {
		return &raftpb.Snapshot{Metadata: s.now()}, nil
	}
	if s.snapshot == nil || s.changed || s.snapshot.GetMetadata().GetIndex() < s.prior.index {
		s.wanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return s.snapshot, nil
}

func (s *storage) last() uint64 { return s.prior.index + uint64(len(s.entries)) }

// append adds entries, in place of those that have the same indices, and all behind.
func (s *storage) append(entries []*raftpb.Entry) {
	for len(entries) > 0 && entries[0].GetIndex() <= s.prior.index {
		entries = entries[1:] // a snapshot covers it
	}
	if len(entries) == 0 {
		s.entries, s.records = nil, nil // they ended there
		return
	}
	keep := entries[0].GetIndex() - s.prior.index - 1
	if keep > uint64(len(s.entries)) {
		panic(fmt.Sprintf("raft: entry %d appended to a log that ends at %d", entries[0].GetIndex(), s.last()))
	}
	if keep < uint64(len(s.entries)) {
		// The library may still hold the part that is replaced.
		s.entries = s.entries[:keep:keep]
	}
	s.entries = append(s.entries, entries...)
	for _, e := range entries {
		if e.GetType() == raftpb.EntryConfChange {
			s.change = e.GetIndex()
		}
	}
	s.records = s.records[:keep]
}

// noteRecord says which record holds the entries that were just appended.
func (s *storage) noteRecord(index uint64) {
	for len(s.records) < len(s.entries) {
		s.records = append(s.records, index)
	}
}

// compact forgets the entries up to an index, which a snapshot covers, and returns the index of the
// first record that is still needed; ok is false if no entry is kept.
func (s *storage) compact(upTo uint64) (record uint64, ok bool) {
	if upTo > s.last() {
		panic(fmt.Sprintf("raft: compaction up to %d of a log that ends at %d", upTo, s.last()))
	}
	if upTo > s.prior.index {
		term, _ := s.Term(upTo)
		n := upTo - s.prior.index
		s.entries = append([]*raftpb.Entry(nil), s.entries[n:]...)
		s.records = append([]uint64(nil), s.records[n:]...)
		s.prior = position{upTo, term}
	}
	if len(s.records) == 0 {
		return 0, false
	}
	return s.records[0], true
}

// install replaces the log by a snapshot.
func (s *storage) install(snap *raftpb.Snapshot) {
	meta := snap.GetMetadata()
	s.prior = position{meta.GetIndex(), meta.GetTerm()}
	s.entries, s.records = nil, nil
	s.voters = meta.GetConfState().GetVoters()
	s.keep(snap)
}

// keep makes a snapshot the newest.
func (s *storage) keep(snap *raftpb.Snapshot) { s.snapshot, s.changed = snap, false }

// replay takes a record from the disk.
func (s *storage) replay(index uint64, rec record) error {
	s.hard = rec.hard
	if n := len(rec.entries); n > 0 {
		if first := rec.entries[0].GetIndex(); first > s.last()+1 {
			return fmt.Errorf("raft: record %d begins with entry %d, the log before it ends at %d: a part of the log is lost",
				index, first, s.last())
		}
		s.append(rec.entries)
		s.noteRecord(index)
	}
	return nil
}

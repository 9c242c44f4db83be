package raft

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

func entriesOf(first uint64, terms ...uint64) []*raftpb.Entry {
	var out []*raftpb.Entry
	for i, t := range terms {
		out = append(out, &raftpb.Entry{Index: new(first + uint64(i)), Term: new(t)})
	}
	return out
}

func termsOf(s *storage) []uint64 {
	var out []uint64
	for i := s.prior.index + 1; i <= s.last(); i++ {
		t, err := s.Term(i)
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

// The storage must give the library what its own MemoryStorage would.
func TestStorageAgreesWithTheLibrarys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		ours, theirs := &storage{}, raft.NewMemoryStorage()
		record := uint64(0)
		for range 40 {
			switch n := r.IntN(10); {
			case n < 7:
				first := ours.prior.index + 1
				if l := ours.last() - ours.prior.index; l > 0 {
					first += r.Uint64N(l + 1)
				}
				terms := make([]uint64, 1+r.IntN(4))
				for i := range terms {
					terms[i] = 1 + r.Uint64N(5)
				}
				es := entriesOf(first, terms...)
				ours.append(es)
				record++
				ours.noteRecord(record)
				if err := theirs.Append(es); err != nil {
					t.Fatal(err)
				}
			case n < 9 && ours.last() > ours.prior.index:
				upTo := ours.prior.index + 1 + r.Uint64N(ours.last()-ours.prior.index)
				ours.compact(upTo)
				if err := theirs.Compact(upTo); err != nil {
					t.Fatal(err)
				}
			default:
				meta := &raftpb.SnapshotMetadata{Index: new(ours.last() + r.Uint64N(3) + 1), Term: new(uint64(9)),
					ConfState: &raftpb.ConfState{Voters: []uint64{1}}}
				snap := &raftpb.Snapshot{Metadata: meta}
				ours.install(snap)
				if err := theirs.ApplySnapshot(snap); err != nil {
					t.Fatal(err)
				}
			}
			compareStorage(t, ours, theirs)
		}
	}
}

func compareStorage(t *testing.T, ours *storage, theirs *raft.MemoryStorage) {
	t.Helper()
	first, _ := ours.FirstIndex()
	last, _ := ours.LastIndex()
	wantFirst, _ := theirs.FirstIndex()
	wantLast, _ := theirs.LastIndex()
	if first != wantFirst || last != wantLast {
		t.Fatalf("entries %d to %d, want %d to %d", first, last, wantFirst, wantLast)
	}
	for i := max(first, 3) - 3; i <= last+2; i++ {
		got, err := ours.Term(i)
		want, wantErr := theirs.Term(i)
		if got != want || !errors.Is(err, wantErr) {
			t.Fatalf("Term(%d) = %d, %v, want %d, %v", i, got, err, want, wantErr)
		}
	}
	for _, size := range []uint64{0, 10, 1 << 20} {
		if first > last {
			break
		}
		got, err := ours.Entries(first, last+1, size)
		want, wantErr := theirs.Entries(first, last+1, size)
		if !slices.Equal(got, want) || err != nil || wantErr != nil {
			t.Fatalf("Entries(%d, %d, %d) = %d entries, %v, want %d, %v", first, last+1, size, len(got), err, len(want), wantErr)
		}
	}
	if first > 1 {
		if _, err := ours.Entries(first-1, last+1, 1); !errors.Is(err, raft.ErrCompacted) {
			t.Fatalf("Entries from %d: %v, want %v", first-1, err, raft.ErrCompacted)
		}
	}
}

// What is replayed behind a snapshot must be what was there, also where a record replaced entries
// that the snapshot covers.
func TestReplayBehindASnapshot(t *testing.T) {
	for _, tc := range []struct {
		name     string
		snapshot uint64
		records  [][]*raftpb.Entry
		want     []uint64
	}{
		{"nothing replaced", 2, [][]*raftpb.Entry{entriesOf(1, 1, 1, 1), entriesOf(4, 1)}, []uint64{1, 1}},
		{"replaced behind it", 2, [][]*raftpb.Entry{entriesOf(1, 1, 1, 1, 1), entriesOf(3, 2)}, []uint64{2}},
		{"replaced across it", 2, [][]*raftpb.Entry{entriesOf(1, 1, 1, 1, 1), entriesOf(2, 2, 2)}, []uint64{2}},
		{"replaced within it", 3, [][]*raftpb.Entry{entriesOf(1, 1, 1, 1, 1), entriesOf(2, 2, 2)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &storage{prior: position{tc.snapshot, 2}}
			for i, es := range tc.records {
				if err := s.replay(uint64(i+1), record{entries: es}); err != nil {
					t.Fatal(err)
				}
			}
			if got := termsOf(s); !slices.Equal(got, tc.want) {
				t.Errorf("terms %v behind the snapshot, want %v", got, tc.want)
			}
			if len(s.records) != len(s.entries) {
				t.Errorf("%d entries in %d records", len(s.entries), len(s.records))
			}
		})
	}
	s := &storage{}
	if err := s.replay(1, record{entries: entriesOf(5, 1)}); err == nil {
		t.Error("a log with a gap was taken")
	}
}

func TestSnapshotThatDoesNotKnowTheMembers(t *testing.T) {
	s := &storage{}
	s.install(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: []uint64{1}}}})
	if _, err := s.Snapshot(); err != nil || s.wanted {
		t.Fatalf("Snapshot() failed with %v, wanted %v", err, s.wanted)
	}
	s.changed = true
	if _, err := s.Snapshot(); !errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable) || !s.wanted {
		t.Errorf("Snapshot() failed with %v, wanted %v, after the members had changed", err, s.wanted)
	}
}

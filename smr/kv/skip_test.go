package kv_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/foresay/foresay/smr/kv"
)

// TestSkip: a store of which the newest versions were lost gives none of them again, neither to a
// key nor to a lease, and does not pretend to have the changes after one of them. That stays so
// when it is written and read.
func TestSkip(t *testing.T) {
	const kept, lost = 5, 10
	was, s := kv.New(), kv.New()
	for i := range uint64(kept + lost) {
		put := kv.Put([]byte("k"), []byte{byte(i)})
		was.Apply(put)
		if i < kept {
			s.Apply(put)
		}
	}
	if err := s.Skip(lost + 1); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"skipped", "read"} {
		if r := apply(t, s, kv.Get([]byte("k"))); r.Version != kept {
			t.Errorf("%s: the key has version %d, not the one that it had, %d", when, r.Version, kept)
		}
		for after := range was.Version() + 1 {
			if r := apply(t, s, kv.Changes(nil, nil, after, 0)); r.Status != kv.Compacted {
				t.Errorf("%s: the changes after version %d: %v", when, after, r.Status)
			}
		}
		var snapshot bytes.Buffer
		if err := s.Snapshot(&snapshot); err != nil {
			t.Fatal(err)
		}
		s = kv.New()
		if err := s.Restore(&snapshot); err != nil {
			t.Fatal(err)
		}
	}
	for range lost { // it passes all that was lost
		r := apply(t, s, kv.Put([]byte("k"), []byte("another")))
		if r.Version <= was.Version() {
			t.Fatalf("version %d is given again", r.Version)
		}
	}
	for version := uint64(kept + 1); version <= was.Version(); version++ {
		if r := apply(t, s, kv.CompareAndSet([]byte("k"), version, nil)); r.Status != kv.Conflict {
			t.Errorf("cas with the lost version %d: %v", version, r.Status)
		}
	}
	if r := apply(t, s, kv.Grant(time.Minute)); r.Version <= was.Version() {
		t.Errorf("lease %d may be another one", r.Version)
	}
}

// TestSkipHasBounds: nobody skips to where versions overflow, nor in the middle of a backup.
func TestSkipHasBounds(t *testing.T) {
	s := kv.New()
	s.Apply(kv.Put([]byte("k"), nil))
	for _, n := range []uint64{kv.MaxSkippedTo, 1<<64 - 1} {
		if err := s.Skip(n); err == nil || s.Version() != 1 {
			t.Errorf("%d versions were skipped, to %d: %v", n, s.Version(), err)
		}
	}
	if err := s.Skip(kv.MaxSkippedTo - 1); err != nil || s.Version() != kv.MaxSkippedTo {
		t.Errorf("to version %d: %v", s.Version(), err)
	}
	s = kv.New()
	part := kv.Load{To: 3, Items: []kv.Item{{Key: []byte("k"), Version: 3}}}
	if r := apply(t, s, part.Encode()); r.Status != kv.OK {
		t.Fatal(r)
	}
	if err := s.Skip(9); err != nil {
		t.Error(err)
	}
	part = kv.Load{After: 3, To: 20, Items: []kv.Item{{Key: []byte("l"), Version: 4}}, Last: true}
	if r := apply(t, s, part.Encode()); r.Status != kv.OK || s.Version() != 20 {
		t.Errorf("the last part of a backup, after a skip: %v, version %d", r, s.Version())
	}
}

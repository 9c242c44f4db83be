package wal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/wal/faultfs"
)

// take has what is in a store stand for what was committed, all of it durable: a node that starts
// acts on what it finds.
func (h *history) take(s *Store) error {
	for _, n := range h.nodes {
		found, err := look(s, n.name)
		if err != nil {
			return err
		}
		batch := 0
		if number, ok := found.keys[counterKey]; ok {
			if _, err := fmt.Sscan(number, &batch); err != nil {
				return err
			}
		}
		n.after, n.acked = slices.Clip(n.after[:batch+1]), n.acked[:batch]
		for i := range n.acked {
			n.acked[i] = 0
		}
	}
	return nil
}

// copy returns a history of its own.
func (h *history) copy() *history {
	c := &history{}
	for _, n := range h.nodes {
		c.nodes = append(c.nodes, &nodeHistory{name: n.name, after: slices.Clip(n.after), acked: slices.Clone(n.acked)})
	}
	return c
}

// A process ends, another begins, finds what was written but not synced, and the power fails: what
// was found must still be there, and what was committed after it too. The second process's life is
// enumerated as the first one's was, in steps.
func TestWhatIsFoundIsDurable(t *testing.T) {
	disk := faultfs.New()
	disk.Trace()
	h := newHistory(2)
	s, err := Open("/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.run(s, disk, rand.New(rand.NewPCG(5, 5)), 60, 1500); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for moment := range disk.Moments() {
		if moment.Ops%(5*oneOf(2)) != 0 {
			continue
		}
		for _, again := range []*faultfs.Disk{moment.Kill(), moment.Crash(uint64(moment.Ops))} {
			n, err := h.copy().secondLife(again, uint64(moment.Ops))
			if err != nil {
				t.Fatalf("the first process ended after %d operations: %v", moment.Ops, err)
			}
			tried += n
		}
	}
	t.Logf("%d crashes of a second process", tried)
}

func (h *history) secondLife(disk *faultfs.Disk, seed uint64) (tried int, err error) {
	rnd := rand.New(rand.NewPCG(seed, 6))
	disk.Trace()
	s, err := Open("/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err != nil {
		return 0, err
	}
	opened := disk.Ops()
	before := h.copy()
	if err := h.take(s); err != nil {
		return 0, err
	}
	if err := h.run(s, disk, rnd, 8, 1500); err != nil {
		return 0, err
	}
	if err := s.Close(); err != nil {
		return 0, err
	}
	for moment := range disk.Moments() {
		if rnd.IntN(8) != 0 && moment.Ops != opened {
			continue
		}
		tried++
		after, err := Open("/data", Options{FS: moment.Crash(seed)})
		if err != nil {
			return tried, fmt.Errorf("crash after %d operations: %w", moment.Ops, err)
		}
		if moment.Ops < opened {
			err = before.check(after, 0) // nothing was said yet; what it finds is whole and in order
		} else {
			err = h.check(after, moment.Ops)
		}
		if err != nil {
			return tried, fmt.Errorf("crash after %d operations: %w", moment.Ops, err)
		}
		if err := after.Close(); err != nil {
			return tried, err
		}
	}
	return tried, nil
}

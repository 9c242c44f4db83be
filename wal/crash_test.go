package wal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/wal/faultfs"
)

// oneOf returns n, for a test that tries every nth place of its grid, or 1 if all is asked for, as
// make soak does. The places beside each other differ by one operation of the disk's. With the race
// detector it returns more: which goroutines meet does not depend on the place.
func oneOf(n int) int {
	switch {
	case os.Getenv(plant.AllVariable) != "":
		return 1
	case race.Enabled:
		return 4 * n
	}
	return n
}

// An enumeration is a run of which each crash is tried.
type enumeration struct {
	nodes, batches, maxBytes int
	seeds                    int // of crashes before each operation
	opts                     Options
	plant                    func(*Store)        // a fault of the store's
	disk                     func(vfs.FS) vfs.FS // a fault of the disk's during the run
	again                    func(vfs.FS) vfs.FS // and afterwards
	crashed                  int
}

// run commits, and then opens the disk of each crash. It returns the first thing that is wrong.
func (e *enumeration) run(seed uint64) error {
	disk := faultfs.New()
	disk.Trace()
	opts := e.opts
	opts.FS, opts.MemTableBytes = disk, minMemTableBytes
	if e.disk != nil {
		opts.FS = e.disk(disk)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	h := newHistory(e.nodes)
	s, err := open("/data", opts, e.plant)
	if err != nil {
		return err
	}
	opened := disk.Ops()
	if err := h.run(s, disk, rnd, e.batches, e.maxBytes); err != nil {
		return err
	}
	if err := h.check(s, disk.Ops()); err != nil {
		return fmt.Errorf("before any crash: %w", err)
	}
	id := s.Identity()
	if err := s.Close(); err != nil {
		return err
	}
	for moment := range disk.Moments() {
		if moment.Ops%oneOf(1) != 0 {
			continue
		}
		for i := range e.seeds {
			e.crashed++
			image := moment.Crash(seed + uint64(i))
			if err := e.reopen(h, image, id, moment.Ops, opened); err != nil {
				return fmt.Errorf("crash after %d operations of %d, seed %d: %w", moment.Ops, disk.Ops(), seed+uint64(i), err)
			}
		}
	}
	return nil
}

func (e *enumeration) reopen(h *history, image *faultfs.Disk, id ID, done, opened int) error {
	opts := Options{FS: image, MemTableBytes: minMemTableBytes}
	if e.again != nil {
		opts.FS = e.again(image)
	}
	s, err := Open("/data", opts)
	if err != nil {
		return err
	}
	err = h.check(s, done)
	if err == nil && done >= opened && s.Identity() != id {
		err = fmt.Errorf("the identity is %v and was %v", s.Identity(), id)
	}
	if err2 := s.Close(); err == nil {
		err = err2
	}
	return err
}

func TestCrashAnywhere(t *testing.T) {
	e := &enumeration{nodes: 3, batches: 100, maxBytes: 1500, seeds: max(1, 2/oneOf(2))}
	if err := e.run(1); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes", e.crashed)
}

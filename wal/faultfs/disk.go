package faultfs

import (
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Disk is a file system. Its methods may be called concurrently. Paths are those of package path;
// relative ones begin at the root.
type Disk struct {
	mu      sync.Mutex
	state   *state
	fault   Fault
	crashed bool
	locked  map[string]bool
	ops     int

	tracing bool
	before  *state // when the trace began
	trace   []change
}

var _ vfs.FS = (*Disk)(nil)

// ErrCrashed is the error of all operations after a crash.
var ErrCrashed = fmt.Errorf("faultfs: the machine has crashed: %w", fs.ErrInvalid)

// New returns an empty disk.
func New() *Disk { return &Disk{state: newState(), locked: make(map[string]bool)} }

// Trace begins to keep all operations for [Disk.Moments], and what they write. It forgets an
// earlier trace and counts from 0.
func (d *Disk) Trace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracing, d.trace, d.ops = true, nil, 0
	d.before = d.state.clone()
}

// Ops returns how many operations have changed the disk, since New or Trace.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Inject sets what decides about each operation, nil for no faults.
func (d *Disk) Inject(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Crash ends the disk, whose operations return [ErrCrashed] from now on, and returns the one that
// the machine finds after it. The same history and the same seed give the same disk.
func (d *Disk) Crash(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crashed = true
	return crashedDisk(d.state, d.ops, seed)
}

// A Moment is a point of a traced run: before an operation, or after the last.
type Moment struct {
	Ops   int // how many operations were done
	state *state
}

// Crash returns what the machine finds if its power fails at this moment. Another seed gives
// another disk.
func (m Moment) Crash(seed uint64) *Disk { return crashedDisk(m.state, m.Ops, seed) }

// Kill returns what the next process finds if only the process ends at this moment: all that was
// written is there, and what was not synced can still be lost.
func (m Moment) Kill() *Disk {
	after := New()
	after.state = m.state.clone()
	return after
}

// Moments goes through the points of the trace, as it is when Moments is called. A moment is for
// the turn of the loop only.
func (d *Disk) Moments() iter.Seq[Moment] {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.state.clone()
	if d.tracing {
		before = d.before.clone()
	}
	trace := d.trace[:len(d.trace):len(d.trace)]
	return func(yield func(Moment) bool) {
		at := before.clone()
		for done := 0; ; done++ {
			if !yield(Moment{Ops: done, state: at}) || done == len(trace) {
				return
			}
			at.apply(trace[done])
		}
	}
}

func crashedDisk(s *state, ops int, seed uint64) *Disk {
	after := New()
	after.state = s.crashed(rand.New(rand.NewPCG(seed, uint64(ops))))
	return after
}

// Corrupt changes a byte of a file, on the disk and in what is read, by exclusive or.
func (d *Disk) Corrupt(name string, offset int64, with byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.find(name)
	if err != nil {
		return err
	}
	d.state.nodes[id].shared = true
	n := d.state.own(id) // its two contents are not the same slice any more
	if offset < 0 || offset >= int64(len(n.view)) || offset >= int64(len(n.durable)) {
		return fmt.Errorf("faultfs: %s has no byte %d on the disk", name, offset)
	}
	n.view[offset] ^= with
	n.durable[offset] ^= with
	return nil
}

// do does an operation that changes the disk. The caller holds the lock.
func (d *Disk) do(name string, c change) error {
	if err := d.ask(Op{Kind: c.kind, Path: clean(name), SizeBytes: len(c.data)}); err != nil {
		if c.kind == KindSync {
			d.keep(change{kind: kindSyncLost, node: c.node})
		}
		return &fs.PathError{Op: c.kind.String(), Path: name, Err: err}
	}
	d.keep(c)
	return nil
}

func (d *Disk) keep(c change) {
	if d.crashed {
		return
	}
	d.state.apply(c)
	d.ops++
	if d.tracing {
		d.trace = append(d.trace, c)
	}
}

func (d *Disk) ask(op Op) error {
	if d.crashed {
		return ErrCrashed
	}
	if d.fault == nil {
		return nil
	}
	return d.fault(op)
}

func clean(name string) string { return path.Clean("/" + name) }

// find returns the node of a path. The caller holds the lock.
func (d *Disk) find(name string) (int, error) {
	id := rootNode
	for part := range strings.SplitSeq(clean(name)[1:], "/") {
		if part == "" {
			continue
		}
		next, ok := d.state.nodes[id].viewNames[part]
		if !ok {
			return 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		id = next
	}
	return id, nil
}

// findParent returns the directory of a path, and the path's last name. The caller holds the lock.
func (d *Disk) findParent(name string) (int, string, error) {
	dir, base := path.Split(clean(name))
	if base == "" {
		return 0, "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	id, err := d.find(dir)
	if err == nil && !d.state.nodes[id].isDir {
		err = &fs.PathError{Op: "open", Path: dir, Err: fs.ErrInvalid}
	}
	return id, base, err
}

// Kill returns what the next process finds if this one ends now: see [Moment.Kill]. The disk itself
// goes on.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Moment{state: d.state}.Kill()
}

package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// disk is what is durable.
type disk struct {
	has    map[string]string
	sorted []string // its keys
}

func newDisk(has map[string]string) *disk { return &disk{has, slices.Sorted(maps.Keys(has))} }

func (d *disk) Get(key []byte) ([]byte, bool) {
	v, ok := d.has[string(key)]
	return []byte(v), ok
}

func (d *disk) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	first, _ := slices.BinarySearch(d.sorted, string(lo))
	return func(yield func([]byte, []byte) bool) {
		for _, k := range d.sorted[first:] {
			if hi != nil && k >= string(hi) || !yield([]byte(k), []byte(d.has[k])) {
				return
			}
		}
	}
}

// write carries out what a call has written.
func (d *disk) write(out []protocol.Effect[any]) {
	for _, e := range out {
		switch e.Kind {
		case protocol.KindPut:
			d.has[string(e.Key)] = string(e.Value)
		case protocol.KindDelete:
			delete(d.has, string(e.Key))
		}
	}
	d.sorted = slices.Sorted(maps.Keys(d.has))
}

// naive is what a store has, as a list.
type naive struct {
	items   map[store.Key]map[store.Version]store.Value
	horizon clock.Stamp
	ceiling clock.Stamp
	closed  clock.Stamp
	keeps   bool // deletions stay
}

func newNaive() *naive { return &naive{items: map[store.Key]map[store.Version]store.Value{}} }

func (n *naive) clone() *naive {
	c := *n
	c.items = map[store.Key]map[store.Version]store.Value{}
	for k, vs := range n.items {
		c.items[k] = maps.Clone(vs)
	}
	return &c
}

func (n *naive) put(key store.Key, v store.Value) {
	if n.items[key] == nil {
		n.items[key] = map[store.Version]store.Value{}
	}
	n.items[key][v.Version] = v
}

func (n *naive) get(key store.Key, at clock.Stamp) (out store.Value) {
	for _, v := range n.items[key] {
		if clock.Stamp(v.Version.Time) <= at && v.Version.Compare(out.Version) >= 0 {
			out = v
		}
	}
	return out
}

// collected forgets what no snapshot from the horizon on sees.
func (n *naive) collected() *naive {
	c := n.clone()
	for key, vs := range c.items {
		keep := n.get(key, n.horizon)
		for version := range vs {
			needed := version == keep.Version && (keep.Present || n.keeps)
			if clock.Stamp(version.Time) <= n.horizon && n.horizon > 0 && !needed {
				delete(vs, version)
			}
		}
		if len(vs) == 0 {
			delete(c.items, key)
		}
	}
	return c
}

// keys are such that one is the beginning of another, and has what escapes and ends keys.
var keys = []store.Key{
	"", "\x00", "\x00\x00", "\x00\xff", "\x00\x01", "a", "a\x00", "a\x00\x01b", "aa", "\xff", "\xff\xff",
}

// A world is a store, with neighbours in its key space, beside a model of it.
type world struct {
	choose func(n int) int
	disk   *disk
	env    *protocol.Env[any]
	store  Store
	model  *naive
	before *naive // as of the last call that was made durable
	last   clock.Stamp
}

func newWorld(choose func(int) int) *world {
	w := &world{choose: choose, disk: newDisk(map[string]string{"r": "left", "t": "right"}), model: newNaive()}
	w.model.keeps = choose(2) == 0
	w.before = w.model.clone()
	w.store = New([]byte("s"))
	w.env = protocol.NewEnv[any](w.disk, 1, nil)
	w.env.Begin(0)
	return w
}

func (w *world) stamp() clock.Stamp { return clock.Stamp(w.choose(12)) }

func (w *world) someValue() store.Value {
	var v store.Value
	v.Version = store.Version{Time: uint64(w.last) + uint64(w.choose(8)), Client: store.ClientID(w.choose(3))}
	if v.Present = w.choose(3) > 0; v.Present {
		v.Bytes = []byte(strings.Repeat("x", w.choose(4)))
	}
	return v
}

// step does something to both, and returns how they differ.
func (w *world) step() error {
	key := keys[w.choose(len(keys))]
	switch w.choose(10) {
	case 0, 1, 2, 3:
		v := w.someValue()
		late := w.model.horizon > 0 && clock.Stamp(v.Version.Time) <= w.model.horizon
		var err *HorizonError
		if got := w.store.Put(w.env, key, v); errors.As(got, &err) != late {
			return fmt.Errorf("put %q at %v with the horizon %v: %v", key, v.Version, w.model.horizon, got)
		}
		if !late {
			w.model.put(key, v)
		}
	case 4:
		to := w.last + w.stamp() - 4
		w.store.RaiseHorizon(w.env, to)
		w.model.horizon = max(w.model.horizon, to)
	case 5:
		limit := 1 + w.choose(6)
		for {
			removed, more := w.collect(limit)
			if removed > limit+2 || more && removed == 0 {
				return fmt.Errorf("%d were removed, with a limit of %d", removed, limit)
			}
			if err := w.compare(); err != nil {
				return fmt.Errorf("while it is collected: %w", err)
			}
			if !more {
				return w.compareAll()
			}
			if w.choose(4) == 0 {
				return nil
			}
		}
	case 6:
		to := w.stamp()
		w.store.RaiseCeiling(w.env, to)
		w.model.ceiling = max(w.model.ceiling, to)
		to = w.stamp()
		w.store.RaiseClosed(w.env, to)
		w.model.closed = max(w.model.closed, to)
	case 7: // the call ends, and is durable or lost in a crash
		if w.choose(4) > 0 {
			w.disk.write(w.env.Out)
			w.before = w.model.clone()
		} else {
			w.model = w.before.clone()
		}
		w.env = protocol.NewEnv[any](w.disk, 1, nil)
		w.env.Begin(0)
	case 8:
		w.last += clock.Stamp(w.choose(3))
	case 9:
		return w.comparePages()
	}
	return w.compare()
}

func (w *world) collect(limit int) (removed int, more bool) {
	if w.model.keeps {
		return w.store.CollectOverwritten(w.env, limit)
	}
	return w.store.Collect(w.env, limit)
}

// compare looks at all snapshots.
func (w *world) compare() error {
	if h, c := w.store.Horizon(w.env), w.store.Ceiling(w.env); h != w.model.horizon || c != w.model.ceiling {
		return fmt.Errorf("the horizon is %v and the ceiling %v, want %v and %v", h, c, w.model.horizon, w.model.ceiling)
	}
	if at := w.store.Closed(w.env); at != w.model.closed {
		return fmt.Errorf("what is closed is %v, want %v", at, w.model.closed)
	}
	for at := w.model.horizon - 1; at < w.last+16; at++ {
		for _, key := range keys {
			got, err := w.store.Get(w.env, key, at)
			if at < w.model.horizon {
				if want := (&HorizonError{at, w.model.horizon}); err == nil || err.Error() != want.Error() {
					return fmt.Errorf("%q at %v: error %v, want %v", key, at, err, want)
				}
				continue
			}
			if err := same(got, w.model.get(key, at), err, w.model.horizon); err != nil {
				return fmt.Errorf("%q at %v: %w", key, at, err)
			}
		}
	}
	for _, key := range keys {
		want := w.model.get(key, clock.Stamp(1)<<62)
		if got := w.store.Newest(w.env, key); w.model.keeps && got.Version != want.Version {
			return fmt.Errorf("newest %q: got %v, want %v", key, got, want)
		}
		if err := same(w.store.Newest(w.env, key), want, nil, w.model.horizon); err != nil {
			return fmt.Errorf("newest %q: %w", key, err)
		}
	}
	return nil
}

// same compares values. A deletion at or below the horizon is as good as nothing.
func same(got, want store.Value, err error, horizon clock.Stamp) error {
	if !want.Present && clock.Stamp(want.Version.Time) <= horizon && got.Version.IsZero() && !got.Present {
		return err
	}
	if err != nil || got.Version != want.Version || got.Present != want.Present || !bytes.Equal(got.Bytes, want.Bytes) {
		return fmt.Errorf("got %v, %v, want %v", got, err, want)
	}
	return nil
}

// compareAll looks whether the store has all that it must have, and nothing else.
func (w *world) compareAll() error {
	want := map[string]bool{}
	for key, vs := range w.model.collected().items {
		for _, v := range vs {
			want[Item{key, v}.String()] = true
		}
	}
	got := map[string]bool{}
	for _, i := range w.store.Copy(w.env, nil, 1<<20).Items {
		got[i.String()] = true
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the versions are %v, want %v", got, want)
	}
	if h := w.model.horizon; h > 0 && w.store.HasGarbage(w.env, h) {
		return fmt.Errorf("there is garbage up to %v, and all is collected", h)
	}
	for raw := range w.env.Scan([]byte("sm"), []byte("sn")) {
		if h := w.model.horizon; h > 0 && bytes.Compare(raw, w.store.mark(last(h), "\xff")) <= 0 {
			return fmt.Errorf("the mark %x is left, the horizon is %v", raw, h)
		}
	}
	return nil
}

// comparePages reads a snapshot, and all versions, in pages of some size.
func (w *world) comparePages() error {
	size, at := 1+w.choose(100), w.model.horizon+w.stamp()
	got := map[store.Key]string{}
	var from Cursor
	for n := 0; ; n++ {
		p, err := w.store.Snapshot(w.env, at, from, size)
		if err != nil {
			return err
		}
		for _, i := range p.Items {
			if _, twice := got[i.Key]; twice || !i.Value.Present {
				return fmt.Errorf("a snapshot has %v", i)
			}
			got[i.Key] = i.String()
		}
		if from = p.Next; from == nil {
			break
		}
	}
	want := map[store.Key]string{}
	for key := range w.model.items {
		if v := w.model.get(key, at); v.Present {
			want[key] = Item{key, v}.String()
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the snapshot at %v in pages of %d is %v, want %v", at, size, got, want)
	}
	if _, err := w.store.Snapshot(w.env, w.model.horizon-1, nil, size); err == nil {
		return errors.New("there is a snapshot from before the horizon")
	}
	return w.compareCopy(size)
}

// compareCopy installs all pages in another store, where some of the versions are already.
// Meanwhile values are written to both.
func (w *world) compareCopy(size int) error {
	other := newWorld(w.choose)
	if w.choose(2) == 0 {
		other.store.Install(other.env, w.store.Copy(w.env, nil, size))
	}
	for from, first := Cursor(nil), true; first || from != nil; first = false {
		p := w.store.Copy(w.env, from, size)
		other.store.Install(other.env, p)
		from = p.Next
		key, v := keys[w.choose(len(keys))], w.someValue()
		if clock.Stamp(v.Version.Time) > w.model.horizon && w.choose(3) == 0 {
			w.store.put(w.env, key, v)
			other.store.put(other.env, key, v)
			w.model.put(key, v)
		}
	}
	other.model, other.last = w.model.clone(), w.last
	other.model.ceiling, other.model.closed = 0, 0 // the group's affair, not a version
	if err := other.compare(); err != nil {
		return fmt.Errorf("a copy: %w", err)
	}
	if _, more := other.collect(1 << 20); more {
		return errors.New("a copy has more than a million versions")
	}
	if err := other.compareAll(); err != nil {
		return fmt.Errorf("a copy that was collected: %w", err)
	}
	return nil
}

// TestModel plays random calls of a store against a list of versions. Some calls are lost in
// crashes; then the store goes on with what it has on disk.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(rnd.IntN)
		for n := range 60 {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, n, err)
			}
		}
		w.disk.write(w.env.Out)
		if l, r := w.disk.has["r"], w.disk.has["t"]; l != "left" || r != "right" {
			t.Fatalf("seed %d: what is beside the store has become %q and %q", seed, l, r)
		}
	}
}

// FuzzModel is TestModel with choices of the fuzzer's.
func FuzzModel(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"))
	f.Add([]byte("0000000004455555599999"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		choices = choices[:min(len(choices), 400)]
		w := newWorld(func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		})
		for n := 0; len(choices) > 0; n++ {
			if err := w.step(); err != nil {
				t.Fatalf("step %d: %v", n, err)
			}
		}
	})
}

// FuzzKeys looks whether keys keep their order, and come back.
func FuzzKeys(f *testing.F) {
	for _, k := range keys {
		f.Add([]byte(k), []byte("a"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := New([]byte("s"))
		x, y := s.versionsOf(store.Key(a)), s.versionsOf(store.Key(b))
		if bytes.Compare(x, y) != bytes.Compare(a, b) || !bytes.Equal(a, b) && bytes.HasPrefix(x, y) {
			t.Errorf("%x and %x are on disk as %x and %x", a, b, x, y)
		}
		if bytes.Compare(x, end(x)) >= 0 || string(a) < string(b) && bytes.Compare(end(x), y) > 0 {
			t.Errorf("the versions of %x end with %x, those of %x begin with %x", a, end(x), b, y)
		}
		v := store.Version{Time: uint64(len(b)), Client: 7}
		if key, version := s.versionAt(at(x, v)); key != store.Key(a) || version != v {
			t.Errorf("%x at %v has become %x at %v", a, v, key, version)
		}
		if key := s.markedAt(s.mark(v, store.Key(a))); key != store.Key(a) {
			t.Errorf("the mark of %x is one of %x", a, key)
		}
		if key, rest, ok := takeKey(a); ok && !bytes.Equal(append(appendKey(nil, key), rest...), a) {
			t.Errorf("%x was read as %x, %x", a, key, rest)
		}
	})
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

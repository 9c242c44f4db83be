package kit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// changing is a state of which snapshots have what was changed, driven as a replica drives it.
type changing struct {
	*savingBench
	t       *testing.T
	rnd     *rand.Rand
	part    int
	waits   []protocol.Effect[smr.Message] // messages to itself, and the timer
	written int                            // bytes of chunks
	begun   Snapshot                       // what is being written
	done    Snapshot                       // what the disk has
	entries []Entry                        // since then
	told    []Entry                        // by the hooks of the last load, before they were replayed
}

func newChanging(t *testing.T, seed uint64) *changing {
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := &changing{t: t, rnd: rnd, part: 16 + rnd.IntN(200), savingBench: newSavingBench(kv.New())}
	c.KeepApplied()
	c.note(c.do(func() { c.Save(c.env, Snapshot{Slot: 1, Data: c.image()}) }))
	c.done = Snapshot{1, c.image()}
	return c
}

func (c *changing) image() []byte {
	b, err := c.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *changing) note(out []protocol.Effect[smr.Message]) {
	for _, e := range out {
		if e.Kind == protocol.KindAfter { // in place of the one that runs
			c.waits = slices.DeleteFunc(c.waits, func(w protocol.Effect[smr.Message]) bool {
				return w.Kind == protocol.KindAfter
			})
		}
		c.waits = append(c.waits, e)
	}
}

func (c *changing) put(key string) {
	c.slot++
	value := make([]byte, c.rnd.IntN(40))
	body := kv.Put([]byte(key), value)
	if c.rnd.IntN(5) == 0 {
		body = kv.Delete([]byte(key))
	}
	c.entries = append(c.entries, Entry{Kind: Command, Client: 1, Session: 1, Seq: Seq(c.slot), Acked: Seq(c.slot),
		Command: body})
	c.Apply(c.slot, c.entries[len(c.entries)-1])
}

func (c *changing) began(done bool, err error) {
	if err != nil {
		c.t.Fatal(err)
	}
	if done {
		c.done = c.begun
		c.entries = c.entries[len(c.entries)-int(c.slot-c.done.Slot):]
	}
}

// save begins a snapshot, if none is under way.
func (c *changing) save() {
	if c.Saving() {
		return
	}
	c.begun = Snapshot{c.slot, c.image()}
	c.note(c.call(func() (bool, error) {
		return c.BeginSave(c.env, smr.ReplicaConfig{ID: savingNode, SnapshotPartBytes: c.part}, c.slot, []byte("front"))
	}))
}

// saveNow makes the state durable in one call, whatever is under way.
func (c *changing) saveNow() {
	c.begun = Snapshot{c.slot, c.image()}
	c.note(c.call(func() (bool, error) {
		return c.SaveNow(c.env, smr.ReplicaConfig{ID: savingNode, SnapshotPartBytes: c.part}, c.slot, []byte("front"))
	}))
	c.began(true, nil)
}

func (c *changing) call(f func() (bool, error)) []protocol.Effect[smr.Message] {
	return c.do(func() {
		done, err := f()
		c.began(done, err)
		for _, e := range c.env.Out {
			if e.Kind == protocol.KindPut && strings.HasPrefix(string(e.Key), chunkPrefix) {
				c.written += len(e.Value)
			}
		}
	})
}

// next does something that waits.
func (c *changing) next() {
	if len(c.waits) == 0 {
		return
	}
	e := c.waits[0]
	c.waits = c.waits[1:]
	if e.Kind == protocol.KindAfter {
		c.note(c.call(func() (bool, error) { return c.ContinueSave(c.env) }))
		return
	}
	c.note(c.do(func() { c.PartSaved(c.env, savingNode) }))
}

// load is a restart: what the disk has, and what was applied since.
func (c *changing) load() *State {
	s := NewState(kv.New(), nil)
	s.KeepApplied()
	c.told = nil
	loaded, replies := false, 0
	s.Around(ApplyHooks{
		Loaded: func(front []byte) error {
			loaded = string(front) == "front"
			return nil
		},
		Before: func(e Entry) {
			if c.told = append(c.told, e); !loaded || s.Applied() == 0 {
				c.t.Fatal("an entry is replayed before it is known what it comes behind")
			}
		},
		After: func(Reply) { replies++ },
	})
	c.env.Begin(0)
	slot, _, ok, err := s.Load(c.env, func(begin []byte) (int, bool) {
		return len(begin) - len(bytes.TrimPrefix(begin, []byte("front"))), true
	})
	if err != nil || !ok || replies != len(c.told) {
		c.t.Fatalf("%v, %v, %d entries are replayed, with %d answers", ok, err, len(c.told), replies)
	}
	s.Around(ApplyHooks{})
	again, err := s.Snapshot()
	if err != nil || slot != c.done.Slot || !bytes.Equal(again, c.done.Data) {
		c.t.Fatalf("the disk has another state at slot %d than the one at slot %d that was written: %v", slot, c.done.Slot,
			err)
	}
	for i, e := range c.entries {
		s.Apply(c.done.Slot+smr.Slot(i)+1, e)
	}
	return s
}

// TestSavingWhatChanged writes snapshots of what has changed while commands are applied, and merges
// them. Whenever the replica crashes the disk has the newest one that is done.
func TestSavingWhatChanged(t *testing.T) {
	most, merges, replays := 0, 0, 0
	for seed := range uint64(25) {
		c := newChanging(t, seed)
		for range 1000 {
			switch n := c.rnd.IntN(100); {
			case n < 35:
				c.put(fmt.Sprint(c.rnd.IntN(60)))
			case n < 42:
				c.save()
			case n < 43:
				c.saveNow()
			case n < 99:
				before := c.merging
				if c.next(); before != nil && c.merging == nil && c.saving == nil {
					merges++
				}
			default:
				if c.State, c.waits = c.load(), nil; c.HasTail() {
					replays++
				}
			}
			h, err := readSnapshotHead(c.env)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, len(h.segments))
		}
		for c.Saving() || c.merging != nil {
			c.next()
		}
		c.load()
	}
	if most < 3 || merges < 10 || replays < 10 {
		t.Errorf("at most %d segments, merged %d times, %d replays loaded: the test does not see what it is for", most,
			merges, replays)
	}
}

// TestSnapshotsCostWhatChanged: with much state of which little changes, a snapshot writes little,
// and the disk has little more than the state.
func TestSnapshotsCostWhatChanged(t *testing.T) {
	c := newChanging(t, 1)
	c.part = 512
	rest := func() {
		for c.Saving() || c.merging != nil {
			c.next()
		}
	}
	for n := range 1500 {
		c.put(fmt.Sprint("cold", n))
	}
	c.save()
	rest()
	whole := c.written
	const rounds = 100
	for range rounds {
		for n := range 10 {
			c.put(fmt.Sprint("hot", n))
		}
		c.save()
		rest()
	}
	if perRound := (c.written - whole) / rounds; perRound > whole/20 {
		t.Errorf("a snapshot of 10 keys in %d bytes writes %d bytes", whole, perRound)
	}
	size := 0
	for _, chunk := range c.keys {
		size += len(chunk)
	}
	if size > 2*whole+c.part {
		t.Errorf("the disk has %d bytes for a state of %d", size, whole)
	}
	c.load()
}

// TestSaveNowWritesWhatCame: with much state a change of the members writes what came since the
// last snapshot in one call, and all of the state in parts. Meanwhile nobody is sent a snapshot,
// and a damaged tail is an error.
func TestSaveNowWritesWhatCame(t *testing.T) {
	c := newChanging(t, 1)
	c.part = 512
	for n := range 1500 {
		c.put(fmt.Sprint("cold", n))
	}
	for c.save(); c.Saving(); {
		c.next()
	}
	whole := c.written
	for range 3 {
		for n := range 10 {
			c.put(fmt.Sprint("hot", n))
		}
		last := c.entries[len(c.entries)-1].Command
		c.mark = segment{} // as with another snapshot under way: all of the state is to be written
		before := c.written
		if c.saveNow(); c.written-before > whole/20 {
			t.Errorf("%d of %d bytes are written in one call", c.written-before, whole)
		}
		if c.load(); string(c.told[len(c.told)-1].Command) != string(last) || len(c.told)%10 != 0 {
			t.Errorf("%d entries are replayed, the last one %q, want all since the snapshot, to %q", len(c.told),
				c.told[len(c.told)-1].Command, last)
		}
	}
	c.env.Begin(0)
	if _, ok, err := SendSnapshot(c.env); ok || err != nil {
		t.Errorf("a snapshot of an earlier moment is sent: %v, %v", ok, err)
	}
	h, _ := readSnapshotHead(c.env)
	if len(h.since.segments) != 3 {
		t.Fatalf("the tail has %d segments, want 3", len(h.since.segments))
	}
	for _, part := range h.since.segments {
		key := string(chunkKey(part.area, 0))
		good := c.keys[key]
		for _, bad := range [][]byte{nil, good[1:], append([]byte{good[0] ^ 1}, good[1:]...)} {
			c.keys[key] = bad
			c.env.Begin(0)
			s := NewState(kv.New(), nil)
			if _, _, _, err := s.Load(c.env, nil); err == nil {
				t.Errorf("%d bytes in place of %d are loaded", len(bad), len(good))
			}
		}
		c.keys[key] = good
	}
	for c.Saving() {
		c.next()
	}
	h, _ = readSnapshotHead(c.env)
	chunks := uint64(0)
	for key := range c.keys {
		if strings.HasPrefix(key, chunkPrefix) {
			chunks++
		}
	}
	if len(h.segments) != 1 || h.since.there() || chunks != h.segments[0].chunks {
		t.Errorf("behind a snapshot that is done the disk has %d chunks, and %+v", chunks, h)
	}
	c.load()
}

// TestSnapshotsOfAllThatChanged: where all of a state changes between two snapshots, one of them
// writes it once, not what has changed and all of it beside.
func TestSnapshotsOfAllThatChanged(t *testing.T) {
	c := newChanging(t, 6)
	c.part = 4096
	whole := 0
	for range 8 {
		for n := range 4000 { // about as many as the store keeps for who watches it
			c.put(fmt.Sprint(n))
		}
		whole += len(c.image())
		for c.save(); c.Saving() || c.merging != nil; {
			c.next()
		}
	}
	if c.written > whole*4/5 { // what has changed is a little more than half of the state
		t.Errorf("states of %d bytes in all wrote %d", whole, c.written)
	}
	c.load()
}

// TestPartsOfAChainAreNeeded: a snapshot on disk that lacks a part, or has another one, is an
// error.
func TestPartsOfAChainAreNeeded(t *testing.T) {
	c := newChanging(t, 2)
	c.part = 64
	for range 4 {
		for n := range 20 {
			c.put(fmt.Sprint(n))
		}
		for c.save(); c.Saving(); {
			c.next()
		}
	}
	if h, _ := readSnapshotHead(c.env); len(h.segments) < 2 {
		t.Fatalf("%d segments", len(h.segments))
	}
	for key, chunk := range c.keys {
		if !strings.HasPrefix(key, chunkPrefix) {
			continue
		}
		for _, bad := range [][]byte{nil, chunk[1:], append(slices.Clone(chunk), 1),
			append([]byte{chunk[0] ^ 1}, chunk[1:]...)} {
			c.keys[key] = bad
			c.env.Begin(0)
			if _, _, err := loadSnapshot(c.env); err == nil {
				t.Errorf("%q with %d bytes in place of %d is read", key, len(bad), len(chunk))
			}
		}
		c.keys[key] = chunk
	}
	s := NewState(&journal{}, group(1))
	if err := s.Restore(bytes.TrimPrefix(c.onDisk(t).Data, []byte("front"))); err == nil ||
		!strings.Contains(err.Error(), "knows nothing") {
		t.Errorf("a machine that is no Differ takes it: %v", err)
	}
}

// TestMergingWaitsLonger: the disk is the log's for three quarters of the time while no log waits
// for a snapshot.
func TestMergingWaitsLonger(t *testing.T) {
	c := newChanging(t, 3)
	c.part = 64
	for c.merging == nil || c.Saving() {
		for n := range 20 {
			c.put(fmt.Sprint(n))
		}
		c.save()
		for c.Saving() {
			c.next()
		}
	}
	c.env.Begin(c.wrote + 10*time.Millisecond)
	for c.underWay > 0 {
		c.PartSaved(c.env, savingNode)
	}
	if out := c.env.Out; len(out) != 1 || out[0].Timer != (SaveTimer{}) || out[0].Delay != 30*time.Millisecond {
		t.Errorf("after 10ms %+v, want a timer of 30ms", out)
	}
}

// TestSavingHurriesIfTheLogGrows: the more came while a snapshot was written, the less it waits.
func TestSavingHurriesIfTheLogGrows(t *testing.T) {
	for grown, want := range map[int]time.Duration{0: 10 * time.Millisecond, 25: 5 * time.Millisecond, 50: 0, 90: 0} {
		c := newChanging(t, 5)
		for n := range 20 {
			c.put(fmt.Sprint(n))
		}
		c.do(func() {
			if _, err := c.BeginSave(c.env, smr.ReplicaConfig{ID: savingNode, SnapshotPartBytes: 16, LogBytes: 100}, c.slot,
				nil); err != nil {
				t.Fatal(err)
			}
		})
		c.weightBytes += grown
		c.env.Begin(c.wrote + 10*time.Millisecond)
		c.PartSaved(c.env, savingNode)
		if out := c.env.Out; len(out) != 1 || out[0].Timer != (SaveTimer{}) || out[0].Delay != want {
			t.Errorf("the log has grown by %d %%: %+v, want a timer of %v", grown, out, want)
		}
	}
}

package raft

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// playMembers plays a seed of a group that grows and shrinks, under faults: two members are added,
// and two of the first removed, the one that led first among them.
func playMembers(seed uint64) (*partWorld, error) {
	w, err := newPartWorld(seed)
	if err != nil {
		return nil, err
	}
	w.changes = true
	for id := protocol.ID(4); id <= 5; id++ {
		if err := w.add(id, wan.Site("abc"[id-4:id-3]), true); err != nil {
			return nil, err
		}
	}
	w.sim.At(300*time.Millisecond, func() {
		err = w.sim.Inject(sim.Profile{Faults: sim.Swarm(seed, sim.StreamFaults) | sim.Crash, Every: 400 * time.Millisecond,
			Lasting: 300 * time.Millisecond})
		w.load(11 * time.Second)
	})
	w.sim.At(time.Second, func() {
		w.change(smr.Change{Add: smr.Member{ID: 4, Address: "four"}}, smr.Change{Remove: 1},
			smr.Change{Add: smr.Member{ID: 5, Address: "five"}}, smr.Change{Remove: 2})
	})
	if err2 := w.sim.Run(8 * time.Second); err2 != nil || err != nil {
		return w, fmt.Errorf("%w, %w", err2, err)
	}
	w.sim.Heal()
	for id := protocol.ID(1); id <= 5; id++ {
		w.sim.Restart(id)
	}
	if err := w.sim.Run(6 * time.Second); err != nil {
		return w, err
	}
	// All begin anew: who the members are is on their disks.
	for _, m := range w.members {
		w.sim.Crash(m.ID, sim.KeepNone)
		w.sim.Restart(m.ID)
	}
	if err := w.sim.Run(3 * time.Second); err != nil {
		return w, err
	}
	want := []smr.Member{{ID: 3}, {ID: 4, Address: "four"}, {ID: 5, Address: "five"}}
	if !slices.Equal(w.members, want) {
		return w, fmt.Errorf("the members are %v, want %v; the last answer was %q", w.members, want, w.answers)
	}
	for _, m := range w.members {
		if got := w.sim.Get(m.ID).(*owner).part.replica.State.Members(); !slices.Equal(got, want) {
			return w, fmt.Errorf("member %d has the members %v, want %v", m.ID, got, want)
		}
	}
	return w, w.judge()
}

// change asks for changes of the members, one after the other, until each is carried out.
func (w *partWorld) change(changes ...smr.Change) {
	newest := uint64(0)
	for id := protocol.ID(1); id <= 5; id++ {
		if o, up := w.sim.Get(id).(*owner); up && o.part.Applied().Index >= newest {
			newest, w.members = o.part.Applied().Index, o.part.replica.State.Members()
		}
	}
	if len(changes) == 0 {
		return
	}
	c := changes[0]
	is := slices.ContainsFunc(w.members, func(m smr.Member) bool { return m.ID == c.Add.ID || m.ID == c.Remove })
	if is == (c.Remove == 0) {
		changes = changes[1:] // it is carried out
	} else {
		for _, m := range w.members {
			w.sim.Deliver(m.ID, change{c})
		}
	}
	w.sim.After(50*time.Millisecond, func() { w.change(changes...) })
}

// TestPartChangesMembers changes the members of groups that are embedded.
func TestPartChangesMembers(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 4
	}
	copies, waits := 0, 0
	for seed := range seeds {
		w, err := playMembers(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		copies += w.copies
		for _, why := range w.answers {
			if strings.Contains(why, "brought up to date") {
				waits++
			}
		}
	}
	if n := int(seeds); copies < 2*n || waits < n {
		t.Errorf("%d copies of states, and %d answers that a replica has to wait, are few", copies, waits)
	}
}

// TestPartMembersNotice plays the seeds of changes that notice a bug.
func TestPartMembersNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		_, err := playMembers(seed)
		return err
	})
}

package domino

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/wan"
)

// off returns clocks of which some are off from the start on.
func off(by time.Duration, some ...protocol.ID) func(protocol.ID) sim.Clock {
	return func(id protocol.ID) sim.Clock {
		if slices.Contains(some, id) {
			return sim.Clock{Offset: by}
		}
		return sim.Clock{}
	}
}

func (w *world) jump(by time.Duration, some ...protocol.ID) {
	for _, id := range some {
		w.Jump(id, by)
	}
}

// time is what a clock shows that is right: an hour at the beginning of the simulation.
func (w *world) time() time.Duration { return w.Now() + time.Hour }

// serves fails if a command or a read takes a second or more.
func (w *world) serves(t *testing.T, when string) {
	t.Helper()
	for _, c := range []smr.Call{
		{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("v"))}, {Kind: smr.Read, Command: []byte("k")},
	} {
		w.Done = nil
		w.Call(w.Clients[0], c)
		w.Run(time.Second)
		if len(w.Done) != 1 || w.Done[0].Outcome != smr.Committed {
			t.Errorf("%s, call %v: %+v", when, c.Kind, w.Done)
		}
	}
}

// claimed returns how far the claims of replicas are ahead of the time, at most.
func (w *world) claimed() (ahead time.Duration) {
	for _, id := range []protocol.ID{1, 2, 3} {
		ahead = max(ahead, at(w.replica(id).acceptor.skipped)-w.time(), at(w.replica(id).acceptor.closed)-w.time())
	}
	return ahead
}

// TestClocksThatJumpAreNotFollowed: a majority of clocks, or all, jump ahead by an hour, for a
// moment or for good. Claims stay where they were, and commands and reads are served all along.
func TestClocksThatJumpAreNotFollowed(t *testing.T) {
	for name, opt := range map[string]Options{"domino": thesis(), "domino-direct": beyond()} {
		for _, which := range [][]protocol.ID{{1, 2}, {1, 2, 3}} {
			told := map[protocol.ID][]smr.ClockOff{}
			w := newWorld(t, setup{preset: "na3", opt: opt, cfg: sim.Config[smr.Message]{
				App: func(from protocol.ID, msg smr.Message) {
					if m, ok := msg.(smr.ClockOff); ok {
						told[from] = append(told[from], m)
					}
				},
			}})
			w.Run(time.Second)
			w.serves(t, name+" before")
			for range 8 { // some message comes before the next tick
				w.Call(w.Client("VA"), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("v"))})
				w.Run(3 * time.Millisecond)
			}
			w.Run(20 * time.Millisecond)
			w.jump(time.Hour, which...)
			for range 20 {
				w.Run(100 * time.Millisecond)
				if far := w.claimed(); far > time.Second {
					t.Fatalf("%s: clocks of %v jumped by an hour, and claims are %v ahead", name, which, far)
				}
			}
			w.serves(t, name+", with clocks that are ahead")
			for _, id := range which {
				if held := w.Ask(id).ClockHeld; held < time.Hour-time.Second || held > time.Hour {
					t.Errorf("%s: replica %d's status says that its clock is held by %v", name, id, held)
				}
				if n := told[id]; len(n) != 1 || n[0].Held < time.Hour-time.Second || n[0].Held > time.Hour {
					t.Errorf("%s: replica %d says %v, want that its clock is held", name, id, n)
				}
			}
			w.jump(-time.Hour, which...)
			w.serves(t, name+", after clocks were ahead")
			if far := w.claimed(); far > time.Second {
				t.Errorf("%s: claims are %v ahead", name, far)
			}
			w.Run(time.Second)
			for _, id := range which {
				if n := told[id]; len(n) != 2 || n[1] != (smr.ClockOff{}) {
					t.Errorf("%s: replica %d says %v, want that its clock is right again", name, id, n)
				}
			}
		}
	}
}

// TestClocksThatAreSetRightAreFollowed: a majority of clocks was a minute behind and jumps to the
// time that another member has, so it is followed at once. Where the others are not as far, as
// after all machines stood still, it catches up by a tenth.
func TestClocksThatAreSetRightAreFollowed(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: beyond(), clocks: off(-time.Minute, 1, 2)})
	w.Run(2 * time.Minute)
	w.jump(time.Minute, 1, 2)
	w.Run(time.Second)
	for _, id := range []protocol.ID{1, 2, 3} {
		if r := w.replica(id); r.time.held != 0 || w.time()-at(r.passed()) > 200*time.Millisecond {
			t.Errorf("replica %d holds its clock by %v, and knows that %v of %v have passed", id, r.time.held,
				at(r.passed()), w.time())
		}
	}
	w.serves(t, "set right")
	w.jump(20*time.Second, 1, 2, 3)
	for _, want := range []time.Duration{20 * time.Second, 10 * time.Second, 0} {
		w.serves(t, "stood still")
		behind := at(slotAt(w.Clock(3)) - w.replica(3).passed())
		if behind > want+200*time.Millisecond || behind < want-4*time.Second {
			t.Errorf("the group's time is %v behind the clocks, want about %v", behind, want)
		}
		w.Run(100 * time.Second)
	}
}

// TestClaimsAheadAreTold: how far what was promised is ahead of a clock is told in the status, and
// to the application when it is far, and when it is not any more.
func TestClaimsAheadAreTold(t *testing.T) {
	told := map[protocol.ID][]smr.ClockOff{}
	w := newWorld(t, setup{preset: "na3", opt: beyond(), clocks: off(4*time.Second, 1, 2), cfg: sim.Config[smr.Message]{
		App: func(from protocol.ID, msg smr.Message) {
			if m, ok := msg.(smr.ClockOff); ok {
				told[from] = append(told[from], m)
			}
		},
	}})
	w.Run(2 * time.Second)
	about := func(d, want time.Duration) bool {
		return d > want-300*time.Millisecond && d < want+300*time.Millisecond
	}
	for id, want := range map[protocol.ID]time.Duration{1: 0, 2: 0, 3: 4 * time.Second} {
		if s := w.Ask(id); !s.Timed || !about(s.ClaimsAhead, want) {
			t.Errorf("replica %d says %v, %v, want %v", id, s.Timed, s.ClaimsAhead, want)
		}
	}
	w.jump(-4*time.Second, 1, 2)
	w.Run(200 * time.Millisecond)
	for id := protocol.ID(1); id <= 3; id++ {
		if s := w.Ask(id); !about(s.ClaimsAhead, 4*time.Second) {
			t.Errorf("after the clocks were set right replica %d says %v", id, s.ClaimsAhead)
		}
	}
	w.Run(20 * time.Second)
	for id := protocol.ID(1); id <= 3; id++ {
		if s := w.Ask(id); !about(s.ClaimsAhead, 0) {
			t.Errorf("in the end replica %d says %v", id, s.ClaimsAhead)
		}
		if n := told[id]; len(n) != 2 || !about(n[0].Behind, 4*time.Second) || n[0].Held != 0 ||
			n[1] != (smr.ClockOff{}) {
			t.Errorf("replica %d told %v", id, n)
		}
	}
}

// TestOneClockStaysInStep: one of three clocks has jumped, and nobody sets it right. Its replica
// takes part in new slots with the others, and what it says last of its clock is what is so.
func TestOneClockStaysInStep(t *testing.T) {
	for name, c := range map[string]struct {
		jumps   []time.Duration // each for a while, of replica 3
		waits   time.Duration
		wanting func(smr.ClockOff) bool
	}{
		"jumps ahead": {
			jumps: []time.Duration{time.Hour}, waits: 5 * time.Second,
			wanting: func(m smr.ClockOff) bool { return m.Held > time.Minute && m.Alone == 0 },
		},
		"is ahead, then behind": {
			jumps:   []time.Duration{time.Hour, -2 * time.Hour},
			wanting: func(m smr.ClockOff) bool { return m.Behind > 50*time.Minute && m.Held == 0 },
		},
		"is ahead, then further": {
			jumps:   []time.Duration{2 * time.Second, time.Hour},
			wanting: func(m smr.ClockOff) bool { return m.Held > 50*time.Minute },
		},
	} {
		var told smr.ClockOff
		w := newWorld(t, setup{preset: "na3", opt: beyond(), cfg: sim.Config[smr.Message]{
			App: func(from protocol.ID, msg smr.Message) {
				if m, ok := msg.(smr.ClockOff); ok && from == 3 {
					told = m
				}
			},
		}})
		for _, by := range c.jumps {
			w.Run(2 * time.Second)
			w.jump(by, 3)
		}
		w.Run(c.waits)
		w.serves(t, name)
		for range 150 {
			w.Run(100 * time.Millisecond)
			if far := at(w.replica(3).acceptor.skipped) - w.time(); far > 300*time.Millisecond {
				t.Fatalf("%s: the replica claims %v ahead", name, far)
			}
		}
		if !c.wanting(told) {
			t.Errorf("%s: it says %+v", name, told)
		}
	}
}

// TestHeldClocksCatchUp: all clocks jump ahead by three seconds, and the group's time is where they
// are 35 seconds later, with as many members as there may be, and disks that take longer than a
// round trip.
func TestHeldClocksCatchUp(t *testing.T) {
	const trip = 100 * time.Millisecond
	for _, n := range []int{1, 2, 3, 5, 7} {
		sites := []wan.Site{"a", "b", "c", "d", "e", "f", "g"}[:n]
		w := &world{smrtest.Deploy(t, "", smrsim.Config{
			Protocol: New("", "", beyond()), Clients: sites[:1], RoundTrip: trip,
			Place:   wan.Deployment{Matrix: wan.Uniform(trip, sites...), Replicas: sites},
			Sim:     sim.Config[smr.Message]{Disk: sim.Disk{Latency: trip, Jitter: 2 * trip}, TraceKeep: -1},
			Replica: func(c *smr.ReplicaConfig) { c.Machine, c.Leader = kv.New(), 1 },
		})}
		for id := range n {
			w.jump(3*time.Second, protocol.ID(id+1))
		}
		w.Run(10 * time.Second)
		if r := w.replica(1); r.time.held == 0 {
			t.Errorf("%d members: after 10 s their clocks are followed", n)
		}
		w.Run(25 * time.Second)
		for id := range n {
			r := w.replica(protocol.ID(id + 1))
			if behind := w.Clock(1) - at(r.passed()); r.time.held > 0 || behind > time.Second || r.alone() {
				t.Errorf("%d members: replica %d holds its clock by %v, and the group's time is %v behind", n, id+1, r.time.held,
					behind)
			}
		}
		w.serves(t, "caught up")
	}
}

// TestSlowDiskIsNotAhead: the disks of two of three stall for some seconds, and all clocks are
// right. Nobody says that one is ahead alone, then or later.
func TestSlowDiskIsNotAhead(t *testing.T) {
	var told []smr.ClockOff
	w := newWorld(t, setup{preset: "na3", opt: beyond(), cfg: sim.Config[smr.Message]{
		App: func(_ protocol.ID, msg smr.Message) {
			if m, ok := msg.(smr.ClockOff); ok {
				told = append(told, m)
			}
		},
	}})
	for id := protocol.ID(1); id <= 2; id++ {
		w.SetDisk(id, sim.Disk{Latency: 4 * time.Second})
	}
	w.Run(4 * time.Second)
	for id := protocol.ID(1); id <= 2; id++ {
		w.SetDisk(id, sim.Disk{})
	}
	w.Run(5 * time.Second)
	for _, m := range told {
		if m.Alone > 0 {
			t.Errorf("a replica says that it is ahead alone: %+v", m)
		}
	}
	w.serves(t, "after disks stalled")
}

package domino

import (
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

// away is how long a replica is down in these tests: for longer than a clock may be ahead.
const away = 3 * time.Second

// restart has replicas be down for a while, and lets some time pass afterwards. It fails if the
// claims of any replica are further ahead than slots are closed, and what clocks that were off at a
// time catch up by.
func (w *world) restart(t *testing.T, since time.Duration, which ...protocol.ID) {
	t.Helper()
	for _, id := range which {
		w.Crash(id, sim.KeepAll)
	}
	w.Run(away)
	for _, id := range which {
		w.Restart(id)
	}
	for range 20 {
		w.Run(100 * time.Millisecond)
		if far := w.claimed(); far > time.Second+(w.Now()-since)/catchUp {
			t.Fatalf("after a restart of %v claims are %v ahead", which, far)
		}
	}
}

// TestClocksAheadAtAStart: clocks are an hour ahead when replicas are started again: of one, of
// all, one after the other, or of two at once. The claims stay where they were, and commands and
// reads are served all along.
func TestClocksAheadAtAStart(t *testing.T) {
	for name, opt := range map[string]Options{"domino": thesis(), "domino-direct": beyond()} {
		for _, c := range []struct {
			off    []protocol.ID
			starts [][]protocol.ID
		}{
			{ids(3), [][]protocol.ID{ids(3), ids(3)}},
			{ids(1, 2, 3), [][]protocol.ID{ids(1), ids(2), ids(3)}},
			{ids(1, 2, 3), [][]protocol.ID{ids(2, 3), ids(1)}},
		} {
			w := newWorld(t, setup{preset: "na3", opt: opt})
			w.Run(time.Second)
			w.jump(time.Hour, c.off...)
			since := w.Now()
			w.Run(time.Second)
			for _, which := range c.starts {
				w.restart(t, since, which...)
				w.serves(t, name+", started again with clocks that are ahead")
				for _, id := range which {
					held := w.replica(id).time.held
					if held > time.Hour+time.Second || held < time.Hour-time.Second-(w.Now()-since)/catchUp {
						t.Errorf("%s: replica %d holds its clock by %v, want an hour", name, id, held)
					}
				}
			}
			w.jump(-time.Hour, c.off...)
			w.serves(t, name+", after clocks were ahead")
		}
	}
}

// TestTimeOfOthersAtAStart: a replica whose clock is held at its start goes on from the time of the
// others, although its disk knows less.
func TestTimeOfOthersAtAStart(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: beyond()})
	w.Run(time.Second)
	w.Crash(3, sim.KeepAll)
	w.jump(time.Hour, 3)
	w.Run(time.Second)
	w.Restart(3)
	w.Run(500 * time.Millisecond)
	if held := w.replica(3).time.held; held < time.Hour-200*time.Millisecond || held > time.Hour+200*time.Millisecond {
		t.Errorf("it holds its clock by %v, want an hour", held)
	}
}

// TestGroupThatWasOff: all replicas are off for a week. When a majority is back, time goes on from
// what a majority of clocks show, and nobody is told that anything is off. One clock that is
// further ahead, or shows what it showed a week ago, changes nothing.
func TestGroupThatWasOff(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, off := range []time.Duration{0, time.Hour, -week} {
		told := map[protocol.ID]int{}
		w := newWorld(t, setup{preset: "na3", opt: beyond(), cfg: sim.Config[smr.Message]{
			App: func(from protocol.ID, msg smr.Message) {
				if _, ok := msg.(smr.ClockOff); ok {
					told[from]++
				}
			},
		}})
		w.Run(time.Second)
		w.serves(t, "before")
		for id := protocol.ID(1); id <= 3; id++ {
			w.Crash(id, sim.KeepAll)
		}
		w.Run(time.Second)
		w.jump(week, 1, 2, 3)
		w.jump(off, 1)
		w.Restart(1)
		w.Run(10 * time.Second) // it is alone
		w.Restart(2)
		w.Run(time.Second)
		w.Restart(3)
		w.Run(time.Second)
		for id := protocol.ID(1); id <= 3; id++ {
			if behind := w.time() + week - at(w.replica(id).passed()); behind > time.Second || behind < -time.Second {
				t.Errorf("off by %v: replica %d knows of a time that is %v behind", off, id, behind)
			}
			if told[id] > 0 && off == 0 {
				t.Errorf("off by %v: replica %d says %d times that its clock is off", off, id, told[id])
			}
		}
		if far := w.claimed() - week; far > time.Second {
			t.Errorf("off by %v: claims are %v ahead", off, far)
		}
		w.serves(t, "after a week")
	}
}

// TestSingleMemberThatWasOff: a group of one replica follows its clock.
func TestSingleMemberThatWasOff(t *testing.T) {
	w := &world{smrtest.Deploy(t, "", smrsim.Config{
		Protocol: New("", "", beyond()),
		Place:    wan.Deployment{Matrix: wan.Uniform(20*time.Millisecond, "VA"), Replicas: []wan.Site{"VA"}},
		Replica:  func(c *smr.ReplicaConfig) { c.Machine = kv.New() },
	})}
	w.Crash(1, sim.KeepAll)
	w.Run(time.Minute)
	w.Restart(1)
	w.Run(time.Second)
	if r := w.replica(1); r.time.held != 0 || r.time.told != clockRight {
		t.Errorf("it holds its clock by %v", r.time.held)
	}
	w.serves(t, "after a minute")
}

// join starts a replica with an empty disk, and has the group take it for another one.
func (w *world) join(t *testing.T, opt Options, instead, id protocol.ID) {
	t.Helper()
	must(t, w.Add(id, w.Site(instead), func() (protocol.Node[smr.Message], error) {
		return New("", "", opt).NewReplica(smr.ReplicaConfig{ID: id, Members: w.Members, Machine: kv.New(), Join: true,
			RoundTrip: w.Place.Matrix.MaxRTT(w.Place.Replicas)})
	}))
	for _, change := range []smr.Change{{Remove: instead}, {Add: smr.Member{ID: id}}} {
		w.Done = nil
		w.Call(w.Clients[0], smr.Call{Kind: smr.Reconfigure, Change: change})
		w.Run(10 * time.Second)
		if len(w.Done) != 1 || w.Done[0].Outcome != smr.Committed {
			t.Fatalf("change %+v: %+v", change, w.Done)
		}
	}
}

// TestJoinsWithAClockAhead: a replica with an empty disk, whose clock is an hour ahead, takes the
// time of the group when it becomes a member.
func TestJoinsWithAClockAhead(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: beyond(), clocks: off(time.Hour, 4)})
	w.join(t, beyond(), 3, 4)
	r := w.replica(4)
	if far := max(at(r.acceptor.skipped), at(r.acceptor.closed)) - w.time(); r.role != member || far > time.Second {
		t.Errorf("a new replica (%v) claims %v ahead", r.role, far)
	}
	if r.time.told == clockRight || r.time.held < time.Hour-time.Minute {
		t.Errorf("it holds its clock by %v", r.time.held)
	}
	w.serves(t, "with a new replica")
}

// TestCutOffIsNotAhead: a replica that hears nobody for a while, whose own claims go on, does not
// say that its clock is off, then or when the others are heard again.
func TestCutOffIsNotAhead(t *testing.T) {
	told := 0
	w := newWorld(t, setup{preset: "na3", opt: beyond(), cfg: sim.Config[smr.Message]{
		App: func(_ protocol.ID, msg smr.Message) {
			if _, ok := msg.(smr.ClockOff); ok {
				told++
			}
		},
	}})
	w.Partition(ids(3), ids(1, 2))
	w.Run(10 * time.Second)
	if r := w.replica(3); at(r.acceptor.skipped-r.passed()) < 5*time.Second || r.alone() {
		t.Errorf("its claims are %v ahead of those that it knows, alone %v", at(r.acceptor.skipped-r.passed()), r.alone())
	}
	w.Reunite(ids(3), ids(1, 2))
	w.Run(5 * time.Second)
	if told > 0 {
		t.Errorf("replicas said %d times that their clock is off", told)
	}
}

// TestOneClockThatWasAhead: one of three clocks is an hour ahead when the group begins, and is set
// right. The replica says that it alone is ahead; it serves nobody's commands as an owner, and its
// clients know that. When it is replaced by one with an empty disk, commands take the fast path
// again.
func TestOneClockThatWasAhead(t *testing.T) {
	for name, opt := range map[string]Options{"domino": thesis(), "domino-direct": beyond()} {
		var told []smr.ClockOff
		w := newWorld(t, setup{preset: "na3", opt: opt, clocks: off(time.Hour, 3), cfg: sim.Config[smr.Message]{
			App: func(from protocol.ID, msg smr.Message) {
				if m, ok := msg.(smr.ClockOff); ok && from == 3 {
					told = append(told, m)
				}
			},
		}})
		w.Run(2 * time.Second)
		w.jump(-time.Hour, 3)
		w.Run(2 * time.Second)
		if len(told) != 1 || told[0].Alone < time.Hour-time.Second || told[0].Alone > time.Hour {
			t.Errorf("%s: it says %+v, want that it is ahead alone", name, told)
		}
		put := smr.Call{Kind: smr.Execute, Ack: smr.AckExecuted}
		w.load(put, 4, 4*time.Second)
		for _, id := range w.Clients {
			c := w.Get(id).(*client)
			if _, _, ok := c.bestOwner(w.Clock(id), protocol.App); !ok {
				t.Errorf("%s: client %d knows no way", name, id)
			}
			if way := c.choose(w.Clock(id)); way.fast || way.target == 3 {
				t.Errorf("%s: client %d chooses %+v", name, id, way)
			}
			if _, ok := c.throughOwner(w.Clock(id), 3); ok {
				t.Errorf("%s: client %d would have commands proposed by replica 3", name, id)
			}
		}
		w.join(t, opt, 3, 4)
		if r := w.replica(4); r.alone() || r.time.told != clockRight {
			t.Errorf("%s: the new replica is ahead alone", name)
		}
		w.load(put, 4, 4*time.Second)
		fast := 0
		for _, id := range w.Clients {
			if w.Get(id).(*client).choose(w.Clock(id)).fast {
				fast++
			}
		}
		if fast == 0 {
			t.Errorf("%s: no client takes the fast path", name)
		}
	}
}

package domino

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/wan"
)

// TestSeedsNotice plays seeds with the faults that it takes to notice a bug.
func TestSeedsNotice(t *testing.T) {
	for name, faults := range map[string]sim.Faults{
		"messages-lost":  sim.Skew | sim.Reset | sim.Loss | sim.Duplicate | sim.Reorder,
		"replicas-lost":  sim.Crash | sim.Pause | sim.Partition,
		"replicas-cut":   sim.Pause | sim.Partition | sim.Slow | sim.Crash | sim.Partial | sim.OneWay,
		"power-lost":     sim.Crash | sim.Power | sim.Pause | sim.Partition | sim.Partial,
		"clocks":         sim.Skew | sim.Jump,
		"clocks-and-cut": sim.Jump | sim.Skew | sim.Slow | sim.Partition | sim.Pause | sim.Jitter,
	} {
		t.Run(name, func(t *testing.T) {
			plant.Seeds(t, plants(), func(seed uint64) error {
				o := Options{Probe: 50 * time.Millisecond, Direct: true, AllLearn: true, Arrival: true, Slack: time.Millisecond}
				sc := smrtest.Scenario{Protocol: New("", "", o), Seed: seed, Faults: faults, Clients: 8}
				if seed%2 == 0 {
					sc.Replicas = 5
				}
				_, err := smrtest.Play(sc)
				return err
			})
		})
	}
}

// TestDurableIsExecuted: a client has a proposal acknowledged whose slot is far ahead, and its next
// command takes another way. That one must not come first: it says that the first one's answer is
// not needed any more, with which the first one would not be executed.
func TestDurableIsExecuted(t *testing.T) {
	var log []string
	o := beyond()
	o.Slack = 300 * time.Millisecond
	w := newWorld(t, setup{preset: "na3", opt: o, adjust: func(c *smr.ReplicaConfig) {
		if c.ID == 1 {
			c.Machine = &noting{StateMachine: c.Machine, log: &log}
		}
	}})
	w.Call(w.Client("TX"), smr.Call{Kind: smr.Propose, Ack: smr.AckDurable, Command: kv.Put([]byte("k"), []byte("first"))})
	w.Run(60 * time.Millisecond)
	w.client("TX").pause = 100 // DFP is left alone
	w.Call(w.Client("TX"), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("second"))})
	w.Run(time.Second)
	if len(w.Done) != 2 || w.Done[0].Took > 52*time.Millisecond || len(log) != 2 {
		t.Errorf("answers %+v, executed %d commands, want 2", w.Done, len(log))
	}
}

// TestTokens: with much slack, or clocks that differ by more than the way back from a replica, a
// durable proposal may come before one that was acknowledged earlier, elsewhere. With the earlier
// one's slot as Call.After it does not.
func TestTokens(t *testing.T) {
	overtaken := func(tokens bool) bool {
		o := beyond()
		o.Slack = 100 * time.Millisecond
		w := newWorld(t, setup{preset: "na3", opt: o})
		w.Call(w.Client("TX"), smr.Call{Kind: smr.Propose, Ack: smr.AckDurable, Command: kv.Put([]byte("k"), []byte("a"))})
		for len(w.Done) == 0 {
			w.Run(time.Millisecond)
		}
		first := w.Done[0].Slot
		next := smr.Call{Kind: smr.Propose, Ack: smr.AckDurable, Command: kv.Put([]byte("k"), []byte("b"))}
		if tokens {
			next.After = first
		}
		w.Call(w.Client("VA"), next)
		w.Run(time.Second)
		if len(w.Done) != 2 {
			t.Fatalf("%d answers", len(w.Done))
		}
		return w.Done[1].Slot < first
	}
	if !overtaken(false) {
		t.Error("without a token, a later proposal does not come first: the test tells nothing")
	}
	if overtaken(true) {
		t.Error("with a token, a later proposal comes first")
	}
}

// crashWorld is three replicas, and two clients that write one after the other.
type crashWorld struct {
	*smrsim.Group
	logs [3][]string
	done int
}

func newCrashWorld(t *testing.T, seed uint64) *crashWorld {
	c := &crashWorld{}
	const trip = 20 * time.Millisecond
	var err error
	c.Group, err = smrsim.New(smrsim.Config{
		Protocol: New("", "", Options{Direct: true, AllLearn: true, Arrival: true, Probe: 50 * time.Millisecond}),
		Place:    wan.Deployment{Matrix: wan.Uniform(trip, "a", "b", "c"), Replicas: []wan.Site{"a", "b", "c"}},
		Clients:  []wan.Site{"a", "b"}, FirstClient: 100, RoundTrip: trip,
		Sim: sim.Config[smr.Message]{Seed: seed, Disk: sim.Disk{Latency: time.Millisecond, Jitter: time.Millisecond},
			CheckEvery: 10, TraceKeep: -1},
		Replica: func(r *smr.ReplicaConfig) {
			log := &c.logs[r.ID-1]
			*log, r.Leader, r.Machine = nil, 1, &noting{StateMachine: kv.New(), log: log}
		},
		Client: func(c *smr.ClientConfig) { c.Nearest = 0 },
	})
	must(t, err)
	calls := 0
	var next func(id protocol.ID)
	next = func(id protocol.ID) {
		if calls >= 40 {
			return
		}
		calls++
		c.Make(id, smr.Call{Kind: smr.Execute, Command: kv.Put(fmt.Append(nil, calls), nil)}, func(a smrsim.Answer) {
			if a.Outcome != smr.Committed {
				t.Errorf("%+v", a)
			}
			c.done++
			next(id)
		})
	}
	for _, id := range c.Clients {
		c.After(150*time.Millisecond, func() { next(id) })
	}
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCrashAtEachWrite has one replica, or all, crash in a write after ever more steps, with
// nothing, some or all of what is not durable yet. They go on when they are back, all execute the
// same commands in the same order, each once, among them all that were acknowledged.
func TestCrashAtEachWrite(t *testing.T) {
	const every = 23
	for first := range 4 {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			for at := first * every; at < 4000; at += 4 * every {
				c := newCrashWorld(t, 1)
				for range at {
					c.Step()
				}
				victims := ids(protocol.ID(at/every%3 + 1))
				if at/every%4 == 3 {
					victims = ids(1, 2, 3)
				}
				for _, id := range victims {
					c.CrashInNextWrite(id, []sim.Keep{sim.KeepNone, sim.KeepAll, 1}[at%3])
				}
				must(t, c.Run(70*time.Millisecond))
				for _, id := range victims {
					c.Crash(id, sim.KeepNone) // if it has written nothing
					c.Restart(id)
				}
				c.after(t, at)
			}
		})
	}
}

// after lets the clients finish, and looks at what was executed.
func (c *crashWorld) after(t *testing.T, at int) {
	t.Helper()
	if err := c.RunUntil(10*time.Second, func() bool { return c.done == 40 }); err != nil {
		t.Fatalf("crash after %d steps: %d calls are done: %v", at, c.done, err)
	}
	must(t, c.Run(500*time.Millisecond))
	for i, log := range c.logs {
		if !slices.Equal(log, c.logs[0]) || len(log) != 40 {
			t.Fatalf("crash after %d steps: replica %d executed %d commands, replica 1 %d, want the same 40", at, i+1, len(log),
				len(c.logs[0]))
		}
	}
}

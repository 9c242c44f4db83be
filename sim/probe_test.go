package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// act is a message from a test to a probe: what to do in that call.
type act func(env *protocol.Env[any])

// A probe does what it is told and notes what happens to it.
type probe struct {
	sim   *sim.Sim[any]
	notes *[]string
}

func (p *probe) note(env *protocol.Env[any], format string, args ...any) {
	*p.notes = append(*p.notes, fmt.Sprintf("%v ", p.sim.Now())+fmt.Sprintf(format, args...))
}

func (p *probe) Start(env *protocol.Env[any], log []protocol.Record[any]) {
	for _, r := range log {
		p.note(env, "record %d %v", r.Index, r.Msg)
	}
}

func (p *probe) Receive(env *protocol.Env[any], from protocol.ID, msg any) {
	if f, ok := msg.(act); ok {
		f(env)
		return
	}
	p.note(env, "%d: %v", from, msg)
}

func (p *probe) Expire(env *protocol.Env[any], t protocol.Timer) { p.note(env, "timer %v", t) }

func (p *probe) Broken(env *protocol.Env[any], from protocol.ID) { p.note(env, "broken %d", from) }

// A bench is a simulation of two probes, 1 at a and 2 at b, 100 ms apart and back, with their
// notes.
type bench struct {
	*sim.Sim[any]
	notes [3][]string
}

func newBench(t testing.TB, c sim.Config[any]) *bench {
	t.Helper()
	if c.WAN.Sites() == nil {
		c.WAN = wan.Uniform(100*time.Millisecond, "a", "b")
	}
	b := &bench{}
	var err error
	if b.Sim, err = sim.New(c); err != nil {
		t.Fatal(err)
	}
	for id := protocol.ID(1); id <= 2; id++ {
		err := b.Add(sim.Node[any]{ID: id, Site: c.WAN.Sites()[id-1], New: func() protocol.Node[any] {
			return &probe{b.Sim, &b.notes[id]}
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// do makes a probe act at a time.
func (b *bench) do(at time.Duration, id protocol.ID, f act) {
	b.At(at, func() { b.Deliver(id, f) })
}

// send makes probe 1 send to 2 at a time.
func (b *bench) send(at time.Duration, msgs ...any) {
	b.do(at, 1, func(env *protocol.Env[any]) {
		for _, m := range msgs {
			env.Send(2, m)
		}
	})
}

// run lets ten seconds pass.
func (b *bench) run(t testing.TB) {
	t.Helper()
	if err := b.Run(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// want compares a probe's notes.
func (b *bench) want(t testing.TB, id protocol.ID, want ...string) {
	t.Helper()
	got := b.notes[id]
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("node %d lacks %q", id, want[i])
		case i >= len(want):
			t.Errorf("node %d has %q too", id, got[i])
		case got[i] != want[i]:
			t.Errorf("node %d: got %q, want %q", id, got[i], want[i])
		}
	}
}

const ms = time.Millisecond

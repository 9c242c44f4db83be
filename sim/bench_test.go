package sim_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// echo answers each message with the next number.
type echo struct{ peer protocol.ID }

func (e echo) Start(env *protocol.Env[int], _ []protocol.Record[int]) {
	for range 10 {
		env.Send(e.peer, 1)
	}
}

func (e echo) Receive(env *protocol.Env[int], from protocol.ID, n int) { env.Send(from, n+1) }

func (e echo) Expire(*protocol.Env[int], protocol.Timer) {}

func newEcho(t testing.TB, seed uint64) *sim.Sim[int] {
	s, err := sim.New(sim.Config[int]{Seed: seed, WAN: wan.Uniform(50*time.Millisecond, "a", "b")})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []sim.Node[int]{
		{ID: 1, Site: "a", New: func() protocol.Node[int] { return echo{2} }},
		{ID: 2, Site: "b", New: func() protocol.Node[int] { return echo{1} }},
	} {
		if err := s.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func BenchmarkEcho(b *testing.B) {
	s := newEcho(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.Step()
	}
}

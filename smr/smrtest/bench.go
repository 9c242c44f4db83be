package smrtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// Benchmark is the work of all nodes for one write, in one thread: three replicas, and a client
// that keeps so many writes under way. Without a codec it is the protocol's own. write makes the
// nth command.
func Benchmark(
	b *testing.B, p smr.Protocol, roundTrip time.Duration, machine func() smr.StateMachine, write func(n int) []byte,
) {
	for _, codec := range []bool{false, true} {
		for _, pending := range []int{1, 100, 2000} {
			b.Run(fmt.Sprintf("codec=%v/pending=%d", codec, pending), func(b *testing.B) {
				c := smrsim.Config{
					Protocol: p, RoundTrip: roundTrip, Clients: []wan.Site{"a"},
					Place:   wan.Deployment{Matrix: wan.Uniform(time.Millisecond, "a", "b", "c"), Replicas: []wan.Site{"a", "b", "c"}},
					Sim:     sim.Config[smr.Message]{Seed: 1, CheckEvery: 1 << 30, TraceKeep: -1},
					Replica: func(r *smr.ReplicaConfig) { r.Machine, r.Leader = machine(), 1 },
				}
				if codec {
					c.Sim.Codec = p.Codec
				}
				benchmark(b, c, pending, write)
			})
		}
	}
}

func benchmark(b *testing.B, c smrsim.Config, pending int, write func(n int) []byte) {
	g, err := smrsim.New(c)
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Pass(2 * time.Second); err != nil {
		b.Fatal(err)
	}
	done := 0
	var next func()
	next = func() {
		call := smr.Call{Kind: smr.Propose, Command: write(g.Calls(g.Clients[0]))}
		g.Make(g.Clients[0], call, func(a smrsim.Answer) {
			if a.Outcome != smr.Committed {
				b.Fatalf("%+v", a)
			}
			done++
			next()
		})
	}
	for range pending {
		next()
	}
	run := func(n int) {
		for done = 0; done < n && g.Step(); {
		}
		if g.Err() != nil {
			b.Fatal(g.Err())
		}
	}
	run(pending)
	steps := g.Steps()
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
	b.ReportMetric(float64(g.Steps()-steps)/float64(b.N), "steps/op")
}

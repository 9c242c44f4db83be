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

func newEcho(t testing.TB) *sim.Sim[int] {
	t.Helper()
	s, err := sim.New(sim.Config[int]{Seed: 1, WAN: wan.Uniform(50*time.Millisecond, "a", "b")})
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
	s := newEcho(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Step()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkCouriers is what a protocol costs that writes, sets timers and checks itself, over a
// codec, with faults.
func BenchmarkCouriers(b *testing.B) {
	s := newCouriers(b, 1, sim.StreamFaults&^sim.LostDisk, &post{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		s.Step()
	}
	if err := s.Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// TestSpeed prints how many steps are made in a second. It fails only far below what the simulator
// can do, since machines are slow and busy.
func TestSpeed(t *testing.T) {
	for _, test := range []struct {
		name    string
		step    func() bool
		atLeast float64
	}{
		{"an echo", newEcho(t).Step, 1_000_000 / 20},
		{"couriers with their checks", newCouriers(t, 1, sim.StreamFaults&^sim.LostDisk, &post{}, nil).Step, 150_000 / 20},
	} {
		const steps = 100_000
		start := time.Now()
		for range steps {
			if !test.step() {
				t.Fatal("it ended")
			}
		}
		rate := steps / time.Since(start).Seconds()
		t.Logf("%s: %.0f steps per second", test.name, rate)
		if rate < test.atLeast {
			t.Errorf("%s makes %.0f steps per second, less than %.0f", test.name, rate, test.atLeast)
		}
	}
}

// TestStepsAllocateNothing holds the loop to its pools.
func TestStepsAllocateNothing(t *testing.T) {
	s := newEcho(t)
	for range 1000 {
		s.Step()
	}
	if n := testing.AllocsPerRun(1000, func() { s.Step() }); n != 0 {
		t.Errorf("a step of the echo makes %v allocations", n)
	}
}

package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

// atWork has probe 2 take 10 ms for a message of another probe's, and 3 ms for a timer.
func atWork(c sim.Call[any]) time.Duration {
	if _, own := c.Msg.(act); own || c.Node != 2 {
		return 0
	}
	switch c.Kind {
	case sim.CallReceive:
		return 10 * ms
	case sim.CallExpire:
		return 3 * ms
	}
	return -1
}

// TestService has calls wait in line for a node that is at work.
func TestService(t *testing.T) {
	b := newBench(t, sim.Config[any]{Service: atWork, Disk: sim.Disk{Latency: 5 * ms}})
	b.do(0, 2, func(env *protocol.Env[any]) {
		env.After(54*ms, "timer") // runs out while it is at work
		env.After(56*ms, "stopped in line")
		env.After(57*ms, "set again in line")
	})
	b.send(0, 1, 2)
	b.do(55*ms, 2, func(env *protocol.Env[any]) { // takes no time, and waits
		env.Stop("stopped in line")
		env.After(100*ms, "set again in line")
		env.Send(1, "done")
		if env.Now != time.Hour+73*ms {
			t.Errorf("its clock shows %v in a call at 73ms", env.Now)
		}
	})
	b.send(10*ms, 3)
	for at, want := range map[time.Duration]int{49 * ms: 0, 53 * ms: 2, 58 * ms: 6, 61 * ms: 6, 71 * ms: 5, 74 * ms: 1,
		84 * ms: 0} {
		b.At(at, func() {
			if got := b.Waiting(2); got != want {
				t.Errorf("at %v %d calls wait, want %d", at, got, want)
			}
		})
	}
	b.At(75*ms, func() {
		if got := b.Busy(2); got != 25*ms {
			t.Errorf("it was at work for %v, want 25ms", got)
		}
		var out strings.Builder
		if err := b.Explain(&out); err != nil || !strings.Contains(out.String(), "at work for another 8ms, 0 calls wait") {
			t.Errorf("%v, it is explained as\n%s", err, &out)
		}
	})
	b.run(t)
	b.want(t, 2, "60ms 1: 1", "70ms 1: 2", "73ms timer timer", "83ms 1: 3", "176ms timer set again in line")
	b.want(t, 1, "123ms 2: done")
	if b.Busy(2) != 36*ms || b.Busy(1) != 0 || b.Busy(9) != 0 || b.Waiting(9) != 0 {
		t.Errorf("they were at work for %v and %v, want 36ms and nothing", b.Busy(2), b.Busy(1))
	}
}

// TestServiceAndCrash: what waits for a node that crashes is lost, and nobody waits for the call
// that it was at.
func TestServiceAndCrash(t *testing.T) {
	b := newBench(t, sim.Config[any]{Service: atWork})
	b.send(0, 1, 2, 3)
	b.At(64*ms, func() { b.Crash(2, sim.KeepAll) })
	b.At(65*ms, func() { b.Restart(2) })
	b.send(66*ms, 4)
	b.run(t)
	b.want(t, 2, "60ms 1: 1", "126ms 1: 4")
	if got := b.Busy(2); got != 24*ms {
		t.Errorf("it was at work for %v, want 24ms", got)
	}
}

// TestServiceAndReset: a message that waits in line when its connection is lost is lost, and takes
// no time. One that the node is at is not.
func TestServiceAndReset(t *testing.T) {
	b := newBench(t, sim.Config[any]{Service: atWork})
	b.send(0, 1, 2, 3)
	b.At(55*ms, func() { b.Reset(1, 2) })
	b.send(10*ms, 4)
	b.send(60*ms, 5)
	b.run(t)
	b.want(t, 2, "60ms 1: 1", "105ms broken 1", "120ms 1: 5")
}

// TestServiceAndPause: a node that stands still is not at work.
func TestServiceAndPause(t *testing.T) {
	b := newBench(t, sim.Config[any]{Service: atWork})
	b.send(0, 1, 2)
	b.At(55*ms, func() { b.Pause(2, 100*ms, false) })
	b.send(10*ms, 3)
	b.run(t)
	b.want(t, 2, "155ms 1: 1", "165ms 1: 2", "175ms 1: 3")
}

// TestMachine: nodes of one machine are at work one after the other, each for its own calls. If one
// of them crashes, the other goes on with what waits.
func TestMachine(t *testing.T) {
	b := newBench(t, sim.Config[any]{
		Service: func(c sim.Call[any]) time.Duration {
			if _, job := c.Msg.(string); job {
				return 10 * ms
			}
			return 0
		},
		Machine: func(protocol.ID) protocol.ID { return 1 },
	})
	send := func(at time.Duration, to protocol.ID, what string) { b.At(at, func() { b.Deliver(to, what) }) }
	send(0, 1, "a")
	send(ms, 2, "b")
	send(2*ms, 1, "c")
	b.At(15*ms, func() {
		if b.Busy(1) != 10*ms || b.Busy(2) != 5*ms || b.Waiting(1) != 2 || b.Waiting(2) != 2 {
			t.Errorf("at work for %v and %v, %d wait", b.Busy(1), b.Busy(2), b.Waiting(1))
		}
	})
	send(50*ms, 2, "d")
	send(51*ms, 1, "e")
	send(52*ms, 2, "f")
	b.At(55*ms, func() { b.Crash(2, sim.KeepAll) }) // at d
	send(56*ms, 1, "g")
	b.run(t)
	b.want(t, 1, "10ms 0: a", "30ms 0: c", "65ms 0: e", "75ms 0: g", "105ms broken 2")
	b.want(t, 2, "20ms 0: b")
	if b.Busy(1) != 40*ms || b.Busy(2) != 15*ms {
		t.Errorf("at work for %v and %v, want 40ms and 15ms", b.Busy(1), b.Busy(2))
	}
}

// TestServiceLikeItsModel gives a node calls at random times that take random times. Each is made
// when the one before is over and its own time has passed.
func TestServiceLikeItsModel(t *testing.T) {
	type job struct {
		n    int
		take time.Duration
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		b := newBench(t, sim.Config[any]{Seed: seed, Shuffle: seed%2 == 1, Service: func(c sim.Call[any]) time.Duration {
			j, _ := c.Msg.(job)
			return j.take
		}})
		var want []string
		at, free := time.Duration(0), time.Duration(0)
		for i := range 200 {
			at += time.Duration(1+rnd.IntN(4000)) * time.Microsecond
			j := job{i, time.Duration(rnd.IntN(4000)-200) * time.Microsecond}
			b.At(at, func() { b.Deliver(2, j) })
			free = max(free, at) + max(j.take, 0)
			want = append(want, fmt.Sprintf("%v 0: %v", free, j))
		}
		b.run(t)
		b.want(t, 2, want...)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestServiceSaturates loads a node with calls that come at random, and take a millisecond each.
// How long they wait is known: rho/(2(1-rho)) of a call's time at a load of rho. With a load above
// 1 as many are carried out as can be.
func TestServiceSaturates(t *testing.T) {
	const calls = 100_000
	for _, rho := range []float64{0.3, 0.6, 0.9, 1.5} {
		var waited time.Duration
		done := 0
		rnd := rand.New(rand.NewPCG(1, 5))
		s, err := sim.New(sim.Config[time.Duration]{TraceKeep: -1,
			Service: func(c sim.Call[time.Duration]) time.Duration {
				if c.Kind == sim.CallReceive {
					return ms
				}
				return 0
			},
			App: func(_ protocol.ID, since time.Duration) { waited, done = waited+since, done+1 },
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Add(sim.Node[time.Duration]{ID: 1, New: func() protocol.Node[time.Duration] { return worker{} }})
		if err != nil {
			t.Fatal(err)
		}
		left := calls
		var come func()
		come = func() {
			s.Deliver(1, s.Clock(1))
			if left--; left > 0 {
				s.After(time.Duration(rnd.ExpFloat64()*float64(ms)/rho), come)
			}
		}
		s.After(0, come)
		lasts := time.Duration(float64(calls) / rho * float64(ms))
		if err := s.Run(lasts); err != nil {
			t.Fatal(err)
		}
		if rho > 1 {
			if got := float64(done) / lasts.Seconds(); math.Abs(got-1000) > 1 {
				t.Errorf("at a load of %v %.1f calls a second are carried out, want 1000", rho, got)
			}
			if late := s.Waiting(1); late < calls/4 {
				t.Errorf("at a load of %v %d calls wait", rho, late)
			}
			continue
		}
		got, want := float64(waited)/float64(done)/float64(ms), 1+rho/(2*(1-rho))
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("at a load of %v a call takes %.3f ms with its wait, want %.3f", rho, got, want)
		}
		if share := s.Busy(1).Seconds() / lasts.Seconds(); math.Abs(share-rho) > 0.02 {
			t.Errorf("at a load of %v it was at work for a share of %.3f", rho, share)
		}
	}
}

// worker tells its application how long ago a message was sent, by what its clock showed.
type worker struct{}

func (worker) Start(*protocol.Env[time.Duration], []protocol.Record[time.Duration]) {}

func (worker) Receive(env *protocol.Env[time.Duration], _ protocol.ID, sent time.Duration) {
	env.Send(protocol.App, env.Now-sent)
}

func (worker) Expire(*protocol.Env[time.Duration], protocol.Timer) {}

package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

func TestTimers(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(0, 1, func(env *protocol.Env[any]) {
		env.After(10*ms, "a")
		env.After(20*ms, "stopped")
		env.After(30*ms, "later")
		env.After(40*ms, "earlier")
		env.After(-5, "at once")
		env.After(20*ms, [1]string{"a value"})
	})
	b.do(5*ms, 1, func(env *protocol.Env[any]) {
		env.Stop("stopped")
		env.Stop("never set")
		env.After(30*ms, "later")
		env.After(10*ms, "earlier")
	})
	b.do(50*ms, 1, func(env *protocol.Env[any]) { env.After(10*ms, "stopped"); env.After(100*ms, "lost") })
	b.At(100*ms, func() { b.Crash(1, sim.KeepAll) })
	b.At(110*ms, func() { b.Restart(1) })
	b.run(t)
	b.want(t, 1, "0s timer at once", "10ms timer a", "15ms timer earlier", "20ms timer [a value]", "35ms timer later",
		"60ms timer stopped")
}

// TestDatagramBeforeTheStart: a datagram that comes at the moment at which a node is restarted does
// not come before its Start.
func TestDatagramBeforeTheStart(t *testing.T) {
	b := newBench(t, sim.Config[any]{Datagrams: &sim.Datagrams{}})
	b.At(10*ms, func() { b.Crash(2, sim.KeepAll) })
	b.At(70*ms, func() { b.Restart(2) })
	b.send(20*ms, "at the start")
	b.send(21*ms, "later")
	b.run(t)
	b.want(t, 2, "71ms 1: later")
}

// TestTimersLikeTheirModel sets and stops timers at random. The model is a list that is looked
// through.
func TestTimersLikeTheirModel(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		b := newBench(t, sim.Config[any]{Seed: seed})
		due := make(map[int]time.Duration)
		var want []string
		for now := time.Duration(0); now < 200*ms; now += ms {
			for name := range 5 {
				if at, ok := due[name]; ok && at == now {
					want = append(want, fmt.Sprintf("%v timer %d", now, name))
					delete(due, name)
				}
			}
			type op struct {
				name int
				d    time.Duration // less than 0: stop
			}
			var ops []op
			for range rnd.IntN(3) {
				o := op{rnd.IntN(5), time.Duration(rnd.IntN(20)-3) * ms}
				ops = append(ops, o)
				if o.d < 0 {
					delete(due, o.name)
				} else {
					due[o.name] = now + max(o.d, ms/2) // strictly later, and between two rounds
				}
			}
			b.do(now, 1, func(env *protocol.Env[any]) {
				for _, o := range ops {
					if o.d < 0 {
						env.Stop(o.name)
					} else {
						env.After(max(o.d, ms/2), o.name)
					}
				}
			})
			for name := range 5 {
				if at, ok := due[name]; ok && at == now+ms/2 {
					want = append(want, fmt.Sprintf("%v timer %d", at, name))
					delete(due, name)
				}
			}
		}
		if err := b.Run(200*ms - 1); err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(b.notes[1])
		slices.Sort(got) // what runs out at one instant has no order
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d:\ngot  %q\nwant %q", seed, got, want)
		}
	}
}

func TestPause(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: 5 * ms}})
		b.do(0, 2, func(env *protocol.Env[any]) {
			env.After(80*ms, "timer")
			env.After(200*ms, "late timer")
		})
		b.do(69*ms, 2, func(env *protocol.Env[any]) { env.Append("x"); env.Send(1, "durable at 74ms") })
		b.At(70*ms, func() { b.Pause(2, 50*ms, frozen); b.Pause(2, 30*ms, frozen) })
		b.send(30*ms, 1)
		b.send(40*ms, 2)
		b.send(70*ms, 3) // arrives when the pause ends, behind what waited
		b.At(120*ms, func() { b.send(0, 4) })
		b.do(150*ms, 2, func(env *protocol.Env[any]) {
			want := time.Hour + 150*ms
			if frozen {
				want -= 50 * ms
			}
			if env.Now != want {
				t.Errorf("the clock shows %v, want %v", env.Now, want)
			}
		})
		b.run(t)
		b.want(t, 2, "120ms timer timer", "120ms 1: 1", "120ms 1: 2", "120ms 1: 3", "170ms 1: 4", "200ms timer late timer")
		b.want(t, 1, "170ms 2: durable at 74ms")
	}
}

func TestResumeAndCrashEndPauses(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.At(0, func() { b.Pause(2, time.Second, false) })
	b.send(0, 1)
	b.At(60*ms, func() { b.Resume(2) })
	b.send(20*ms, 2)
	b.At(100*ms, func() { b.Pause(2, time.Second, false) })
	b.send(100*ms, "lost")
	b.At(200*ms, func() { b.Crash(2, sim.KeepAll) })
	b.At(210*ms, func() { b.Restart(2) })
	b.send(215*ms, 3)
	b.run(t)
	b.want(t, 2, "60ms 1: 1", "70ms 1: 2", "265ms 1: 3")
}

func TestClocks(t *testing.T) {
	b := newBench(t, sim.Config[any]{ClockStart: time.Minute})
	show := func(at, want time.Duration) {
		b.At(at, func() {
			if got := b.Clock(1) - time.Minute; got != want {
				t.Errorf("at %v the clock shows %v, want %v", at, got, want)
			}
		})
	}
	show(0, 0)
	b.At(ms, func() {
		if err := b.SetClock(1, sim.Clock{Offset: -time.Second, DriftPPM: 1000}); err != nil {
			t.Error(err)
		}
	})
	show(ms, ms-time.Second)
	show(1001*ms, 2*ms)
	b.do(1001*ms, 1, func(env *protocol.Env[any]) { env.After(1001*ms, "timer") })
	show(2001*ms, 1003*ms)
	b.At(3001*ms, func() { b.Jump(1, time.Minute) })
	show(3001*ms, 2004*ms+time.Minute)
	b.At(4001*ms, b.Heal)
	show(4001*ms, 4001*ms)
	b.run(t)
	b.want(t, 1, "2.001s timer timer")
	if err := b.SetClock(1, sim.Clock{DriftPPM: 500_001}); err == nil ||
		err.Error() != "sim: set clock of node 1: a clock's drift of 500001 millionths is more than 500000" {
		t.Errorf("error %v", err)
	}
}

// TestTimersNeverRunOutEarly tries drifts and delays: when a timer runs out the node's clock shows
// that its time has passed, and not much more.
func TestTimersNeverRunOutEarly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		drift := rnd.IntN(1_000_001) - 500_000
		d := time.Duration(rnd.Int64N(int64(1000 * time.Hour)))
		b := newBench(t, sim.Config[any]{TraceKeep: -1})
		if err := b.SetClock(1, sim.Clock{DriftPPM: drift}); err != nil {
			t.Fatal(err)
		}
		b.Deliver(1, act(func(env *protocol.Env[any]) { env.After(d, "timer") }))
		if err := b.RunUntil(10_000*time.Hour, func() bool { return len(b.notes[1]) > 0 }); err != nil {
			t.Fatal(err)
		}
		if over := b.Clock(1) - time.Hour - d; over < 0 || over > 3 {
			t.Fatalf("after %v with a drift of %d, the clock is %v beyond", d, drift, over)
		}
	}
}

func TestDrivenFromTheApplication(t *testing.T) {
	var b *bench
	var got []string
	b = newBench(t, sim.Config[any]{App: func(from protocol.ID, msg any) {
		got = append(got, fmt.Sprint(b.Now(), " ", from, " ", msg))
		if len(got) < 3 {
			b.Deliver(from, act(func(env *protocol.Env[any]) { env.Send(protocol.App, fmt.Sprint("answer ", len(got))) }))
		} else {
			b.Crash(from, sim.KeepAll)
		}
	}})
	b.do(ms, 1, func(env *protocol.Env[any]) { env.SendAhead(protocol.App, "first") })
	b.run(t)
	if want := []string{"1ms 1 first", "1ms 1 answer 1", "1ms 1 answer 2"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if b.Up(1) {
		t.Error("it is up")
	}
}

// TestMessagesToOneselfDieWithTheIncarnation crashes a node while what it and its application said
// to it is due.
func TestMessagesToOneselfDieWithTheIncarnation(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(ms, 1, func(env *protocol.Env[any]) { env.Send(1, "said before the crash") })
	b.At(ms, func() {
		b.At(ms, func() { // behind the call, before what it sent
			b.Deliver(1, act(func(*protocol.Env[any]) { t.Error("asked before the crash") }))
			b.Crash(1, sim.KeepAll)
			b.Restart(1)
		})
	})
	b.do(2*ms, 1, func(env *protocol.Env[any]) { env.Send(1, "after") })
	b.run(t)
	b.want(t, 1, "2ms 1: after")
}

func TestHealTellsAndResets(t *testing.T) {
	b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: ms}})
	b.Cut(1, 2)
	b.Cut(1, 2)
	b.SetDisk(1, sim.Disk{Latency: time.Second})
	b.CrashInWrite(1, 2, sim.KeepAll)
	b.send(0, "lost")
	b.do(ms, 1, func(env *protocol.Env[any]) { env.Append("slow"); env.Send(2, "slow") })
	b.At(10*ms, b.Heal)
	b.do(2*time.Second, 1, func(env *protocol.Env[any]) { env.Append("fast"); env.Send(2, "fast") })
	b.run(t)
	b.want(t, 2, "60ms broken 1", "1.051s 1: slow", "2.051s 1: fast")
}

// TestTimesDoNotOverflow sets timers for never.
func TestTimesDoNotOverflow(t *testing.T) {
	for _, drift := range []int{-500_000, 0, 500_000} {
		b := newBench(t, sim.Config[any]{})
		if err := b.SetClock(1, sim.Clock{DriftPPM: drift}); err != nil {
			t.Fatal(err)
		}
		b.do(0, 1, func(env *protocol.Env[any]) {
			env.After(math.MaxInt64, "never")
			env.After(math.MaxInt64-time.Hour, "hardly ever")
			env.After(time.Hour, "in an hour")
		})
		b.After(math.MaxInt64, func() {})
		b.At(math.MaxInt64, func() {})
		b.Pause(2, math.MaxInt64, false)
		if err := b.Run(10 * time.Hour); err != nil {
			t.Fatal(err)
		}
		if len(b.notes[1]) != 1 {
			t.Errorf("with a drift of %d: %q", drift, b.notes[1])
		}
		if err := b.Run(math.MaxInt64); err != nil || b.Now() < 50*365*24*time.Hour {
			t.Errorf("%v at %v", err, b.Now())
		}
	}
}

// TestShuffle has things happen to two nodes at one instant: either may be first, but what happens
// to one of them keeps its order.
func TestShuffle(t *testing.T) {
	orders := make(map[string]int)
	for seed := range uint64(40) {
		for _, shuffle := range []bool{false, true} {
			var order string
			b := newBench(t, sim.Config[any]{Seed: seed, Shuffle: shuffle, App: func(_ protocol.ID, msg any) {
				order += fmt.Sprint(msg)
			}})
			for id := range protocol.ID(2) {
				b.Deliver(id+1, act(func(env *protocol.Env[any]) { env.After(10*ms, 1) }))
			}
			for i := range 3 {
				for id := range protocol.ID(2) {
					b.Deliver(id+1, act(func(env *protocol.Env[any]) { env.Send(protocol.App, fmt.Sprint(id+1, i, " ")) }))
				}
			}
			b.run(t)
			if shuffle {
				orders[order]++
			} else if order != "1 0 2 0 1 1 2 1 1 2 2 2 " {
				t.Errorf("without shuffling the order is %s", order)
			}
		}
	}
	if len(orders) < 2 {
		t.Errorf("the orders are %v", orders)
	}
	for order, n := range orders {
		t.Log(order, n)
	}
}

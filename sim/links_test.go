package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

func TestMessagesTakeHalfOfTheRoundTrip(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.send(10*ms, "x", "y")
	b.do(20*ms, 2, func(env *protocol.Env[any]) { env.Send(1, "back") })
	b.run(t)
	b.want(t, 2, "60ms 1: x", "60ms 1: y")
	b.want(t, 1, "70ms 2: back")
	if got := b.Stats(); got != (sim.Stats{Sent: 3}) {
		t.Errorf("stats are %+v", got)
	}
	if b.Now() != 10*time.Second {
		t.Errorf("the time is %v", b.Now())
	}
}

func TestCutLinksLoseAndTell(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.send(0, "under way")
	b.At(10*ms, func() { b.Cut(1, 2) })
	b.send(20*ms, "lost")
	b.do(20*ms, 2, func(env *protocol.Env[any]) { env.Send(1, "the other direction") })
	b.At(30*ms, func() { b.Cut(1, 2) })
	b.At(40*ms, func() { b.Mend(1, 2) })
	b.send(50*ms, "lost still, as it was cut twice")
	b.At(100*ms, func() { b.Mend(1, 2) })
	b.send(110*ms, "after")
	b.At(200*ms, func() { b.Mend(1, 2) })
	b.At(300*ms, func() { b.Cut(1, 2) })
	b.At(310*ms, func() { b.Mend(1, 2) }) // nothing was lost, nothing is told
	b.run(t)
	b.want(t, 2, "50ms 1: under way", "150ms broken 1", "160ms 1: after")
	b.want(t, 1, "70ms 2: the other direction")
}

func TestDownSitesLoseAndTell(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	p := wan.Path{From: "a", To: "b"}
	up, _ := b.Link(p)
	down := up
	down.Down = true
	set := func(l wan.Link) func() {
		return func() {
			if err := b.SetLink(p, l); err != nil {
				t.Error(err)
			}
		}
	}
	b.At(0, set(down))
	b.send(10*ms, "lost")
	b.At(20*ms, set(up))
	b.send(30*ms, "after")
	b.run(t)
	b.want(t, 2, "70ms broken 1", "80ms 1: after")
	if err := b.SetLink(wan.Path{From: "a", To: "c"}, up); err == nil ||
		!strings.Contains(err.Error(), `set link a->c: not among the sites ["a" "b"]`) {
		t.Errorf("error %v", err)
	}
	if err := b.SetLink(p, wan.Link{Loss: 2}); err == nil || !strings.Contains(err.Error(), "loss 2 is not in [0, 1)") {
		t.Errorf("error %v", err)
	}
	if _, ok := b.Link(wan.Path{From: "c", To: "a"}); ok {
		t.Error("there is a link from nowhere")
	}
}

func TestResetLosesWhatIsUnderWay(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.send(0, "arrived")
	b.send(10*ms, "lost", "lost too")
	b.At(55*ms, func() { b.Reset(1, 2) })
	b.send(56*ms, "after")
	b.run(t)
	b.want(t, 2, "50ms 1: arrived", "105ms broken 1", "106ms 1: after")
}

func TestPartition(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.Partition([]protocol.ID{1}, []protocol.ID{2})
	b.send(0, "lost")
	b.do(0, 2, func(env *protocol.Env[any]) { env.Send(1, "lost"); env.Send(2, "self") })
	b.At(10*ms, func() { b.Reunite([]protocol.ID{1}, []protocol.ID{2}) })
	b.run(t)
	b.want(t, 1, "60ms broken 2")
	b.want(t, 2, "0s 2: self", "60ms broken 1")
}

func TestJitterAndLossKeepTheOrderOfStreams(t *testing.T) {
	m := wan.Uniform(20*ms, "a", "b")
	p := wan.Path{From: "a", To: "b"}
	l, _ := m.Link(p)
	l.Jitter, l.Loss, l.RTO = 30*ms, 0.2, 100*ms
	b := newBench(t, sim.Config[any]{WAN: m.WithLink(p, l)})
	var want []string
	for i := range 500 {
		b.send(time.Duration(i)*ms, i)
		want = append(want, fmt.Sprintf("1: %d", i))
	}
	b.run(t)
	var got []string
	late := 0
	for i, n := range b.notes[2] {
		at, rest, _ := strings.Cut(n, " ")
		got = append(got, rest)
		if d, err := time.ParseDuration(at); err != nil || d < time.Duration(i+10)*ms {
			t.Errorf("%q came too early", n)
		} else if d > time.Duration(i+110)*ms {
			late++
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if late < 100 {
		t.Errorf("only %d were late", late)
	}
}

func TestBandwidth(t *testing.T) {
	m := wan.Uniform(20*ms, "a", "b")
	p := wan.Path{From: "a", To: "b"}
	l, _ := m.Link(p)
	l.BytesPerSecond = 1000
	b := newBench(t, sim.Config[any]{WAN: m.WithLink(p, l), SizeBytes: func(m any) int { return len(m.(string)) }})
	b.send(0, strings.Repeat("x", 5), "yy")
	b.send(100*ms, "z")
	b.run(t)
	b.want(t, 2, "15ms 1: xxxxx", "17ms 1: yy", "111ms 1: z")
}

func TestDatagrams(t *testing.T) {
	b := newBench(t, sim.Config[any]{Seed: 3, Datagrams: &sim.Datagrams{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1,
		ReorderBy: 20 * ms}})
	const n = 2000
	for i := range n {
		b.send(time.Duration(i)*ms, i)
	}
	b.At(1000*ms+ms/2, func() { b.Reset(1, 2) }) // there is no connection
	b.run(t)
	count := make(map[string]int)
	swaps, last := 0, ""
	for _, note := range b.notes[2] {
		at, msg, _ := strings.Cut(note, " ")
		count[msg]++
		if len(msg) < len(last) || len(msg) == len(last) && msg < last {
			swaps++
		}
		last = msg
		if d, err := time.ParseDuration(at); err != nil || strings.HasPrefix(msg, "broken") || d > (n+70)*ms {
			t.Errorf("got %q", note)
		}
	}
	twice := 0
	for _, c := range count {
		twice += c - 1
	}
	lost := n - len(count)
	for what, got := range map[string]int{"lost": lost, "repeated": twice, "overtaken": swaps} {
		if got < n/20 || got > n/5 {
			t.Errorf("%d of %d were %s", got, n, what)
		}
	}
	if got := b.Stats(); got.Lost != uint64(lost) || got.Duplicated < uint64(twice) || got.Sent != n {
		t.Errorf("stats are %+v; %d were lost, %d repeated", got, lost, twice)
	}
}

func TestUnknownPeersAreNoBodys(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(0, 1, func(env *protocol.Env[any]) { env.Send(7, "x") })
	b.Deliver(7, "y")
	b.Cut(7, 1)
	b.Mend(1, 7)
	b.Reset(7, 7)
	b.Crash(7, sim.KeepAll)
	b.CrashInNextWrite(7, sim.KeepAll)
	b.Restart(7)
	b.LoseDisk(7)
	b.Pause(7, 1, true)
	b.Resume(7)
	b.Jump(7, 1)
	b.SetDisk(7, sim.Disk{})
	if b.Up(7) || b.Get(7) != nil || b.Clock(7) != 0 {
		t.Error("there is a node 7")
	}
	if err := b.SetClock(7, sim.Clock{}); err == nil || err.Error() != "sim: set clock: there is no node 7" {
		t.Errorf("error %v", err)
	}
	if _, _, err := b.Disk(7); err == nil || err.Error() != "sim: there is no node 7" {
		t.Errorf("error %v", err)
	}
	b.run(t)
	if got := b.Stats(); got != (sim.Stats{Sent: 1, Lost: 2}) {
		t.Errorf("stats are %+v", got)
	}
}

func TestSchedulesOfFaults(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	ab := []wan.Path{{From: "a", To: "b"}}
	for _, s := range []wan.Schedule{
		{{From: 10 * ms, Until: 30 * ms, Paths: ab, Down: true}, {From: 20 * ms, Until: 100 * ms, Paths: ab,
			Delay: 100 * ms}},
		{{From: 50 * ms, Until: 10 * time.Second, Paths: ab, Delay: 7 * ms}},
	} {
		if err := b.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	b.send(0, 1)
	b.send(15*ms, "lost")
	b.send(25*ms, "lost too")
	b.send(40*ms, 2)
	b.send(60*ms, 3)
	b.send(120*ms, 4) // behind 3
	b.send(300*ms, 5)
	b.At(400*ms, b.Heal)
	b.send(410*ms, 6)
	b.run(t)
	b.want(t, 2, "50ms 1: 1", "180ms broken 1", "190ms 1: 2", "217ms 1: 3", "217ms 1: 4", "357ms 1: 5", "460ms 1: 6")
	err := b.Apply(wan.Schedule{{Paths: []wan.Path{{From: "a", To: "c"}}}})
	if err == nil || err.Error() != `sim: wan: fault 0 of the schedule: path a->c: not among the sites ["a" "b"]` {
		t.Errorf("error %v", err)
	}
}

// TestRandomSchedules lets drawn faults of the network happen to couriers.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(20) {
		p := &post{}
		s := newCouriers(t, seed, sim.NoFaults, p, nil)
		m := wan.Uniform(0, "a", "b", "c", "d")
		if err := s.Apply(wan.Random(m, wan.Chance{Seed: seed, For: 3 * time.Second, Every: 100 * ms,
			Lasting: 200 * ms})); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(6 * time.Second); err != nil {
			t.Fatal(err)
		}
		if s.Stats().Lost == 0 || p.broken == 0 {
			t.Errorf("seed %d: nothing was lost", seed)
		}
	}
}

// TestFullQueuesLoseAndTell: what does not fit behind what waits to leave is lost, and the next
// message that leaves is preceded by the news.
func TestFullQueuesLoseAndTell(t *testing.T) {
	b := newBench(t, sim.Config[any]{QueueBytes: 250, SizeBytes: func(any) int { return 100 }})
	p := wan.Path{From: "a", To: "b"}
	l, _ := b.Link(p)
	l.BytesPerSecond = 1000
	if err := b.SetLink(p, l); err != nil {
		t.Fatal(err)
	}
	b.send(0, "1", "2", "3")
	b.send(500*ms, "4")
	b.run(t)
	b.want(t, 2, "150ms 1: 1", "250ms 1: 2", "550ms broken 1", "650ms 1: 4")
}

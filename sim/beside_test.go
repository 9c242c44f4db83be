package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// asked is what a program asks the node 2 at a time, and when it has the answer.
type asked struct {
	at   time.Duration
	what string
	took time.Duration
}

// counting returns a simulated counter at another site than its client, whose disk takes 4 ms.
func counting(app func(s *sim.Sim[string], msg string)) *sim.Sim[string] {
	var s *sim.Sim[string]
	s, err := sim.New(sim.Config[string]{Seed: 1, WAN: wan.Uniform(60*ms, "here", "there"),
		Disk: sim.Disk{Latency: 4 * ms}, App: func(_ protocol.ID, msg string) { app(s, msg) }})
	if err == nil {
		err = errors.Join(
			s.Add(sim.Node[string]{ID: 1, Site: "there", New: func() protocol.Node[string] { return new(counter) }}),
			s.Add(sim.Node[string]{ID: 2, Site: "here", New: func() protocol.Node[string] { return client{} }}))
	}
	if err != nil {
		panic(err)
	}
	return s
}

// TestBeside has goroutines sleep, ask, and wait. They see the times that the simulation alone has
// if it is asked at the same times, and it makes the same steps.
func TestBeside(t *testing.T) {
	const each = 5
	var all []asked
	var hash uint64
	synctest.Test(t, func(t *testing.T) {
		answers, mu := map[string]chan bool{}, sync.Mutex{}
		waitFor := func(what string) chan bool {
			mu.Lock()
			defer mu.Unlock()
			if answers[what] == nil {
				answers[what] = make(chan bool, 1)
			}
			return answers[what]
		}
		s := counting(func(_ *sim.Sim[string], msg string) {
			var what string
			_, _ = fmt.Sscan(msg, &what)
			waitFor(what) <- true
		})
		b := sim.NewBeside(s)
		ctx, cancel := context.WithCancel(t.Context())
		var running, programs sync.WaitGroup
		running.Go(func() {
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		begun := time.Now()
		for p := range 3 {
			programs.Go(func() {
				for i := range each {
					time.Sleep(time.Duration(7*p+i) * ms)
					a := asked{at: time.Since(begun), what: fmt.Sprintf("%d-%d", p, i)}
					if err := b.Do(func(s *sim.Sim[string]) { s.Deliver(2, a.what) }); err != nil {
						t.Error(err)
					}
					<-waitFor(a.what)
					a.took = time.Since(begun) - a.at
					mu.Lock()
					all = append(all, a)
					mu.Unlock()
				}
			})
		}
		programs.Wait()
		cancel()
		running.Wait()
		hash = s.Hash()
	})

	took := map[string]time.Duration{}
	began := map[string]time.Duration{}
	alone := counting(func(s *sim.Sim[string], msg string) {
		var what string
		_, _ = fmt.Sscan(msg, &what)
		took[what] = s.Now() - began[what]
	})
	slices.SortFunc(all, func(a, b asked) int { return int(a.at - b.at) })
	for _, a := range all { // an event of the test would count as a step
		if err := alone.Run(a.at - alone.Now()); err != nil {
			t.Fatal(err)
		}
		began[a.what] = a.at
		alone.Deliver(2, a.what)
	}
	if err := alone.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if len(all) != 3*each || all[0].took != 64*ms {
		t.Errorf("%d answers, the first after %v", len(all), all[0].took)
	}
	for _, a := range all {
		if a.took != took[a.what] || a.took < 64*ms {
			t.Errorf("%q, asked at %v, took %v; in the simulation alone %v", a.what, a.at, a.took, took[a.what])
		}
	}
	if hash != alone.Hash() {
		t.Errorf("beside goroutines the steps are others: %x, %x", hash, alone.Hash())
	}
}

// TestBesideFails: a failure of the simulation ends Run when it happens, and is what Do returns
// from then on.
func TestBesideFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBench(t, sim.Config[any]{})
		s.do(3*time.Second, 2, func(*protocol.Env[any]) { panic("a bug") })
		b, begun := sim.NewBeside(s.Sim), time.Now()
		time.Sleep(time.Second)
		if err := b.Do(func(s *sim.Sim[any]) {
			if s.Now() != time.Second {
				t.Errorf("it is %v", s.Now())
			}
		}); err != nil {
			t.Error(err)
		}
		wantFailure(t, b.Run(t.Context()), "panic", "a bug", 2)
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("Run ends after %v", took)
		}
		wantFailure(t, b.Do(func(*sim.Sim[any]) { t.Error("f is called") }), "panic", "a bug", 2)
	})
}

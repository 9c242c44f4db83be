package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

func TestTimers(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDiary()
		n := &node{
			start: func(env *protocol.Env[string], _ []protocol.Record[string]) {
				env.After(10*time.Millisecond, "replaced")
				env.After(20*time.Millisecond, "replaced")
				env.After(5*time.Millisecond, "stopped")
				env.Stop("stopped")
				env.Stop("never set")
				env.After(0, "at once")
				env.After(-time.Second, "negative")
				env.After(15*time.Millisecond, 7)
				env.After(15*time.Millisecond, 7.0)
				env.After(30*time.Millisecond, "stops the other")
				env.After(30*time.Millisecond, "other")
				env.After(40*time.Millisecond, "moves the other")
				env.After(40*time.Millisecond, "third")
				d.at("start")
			},
			expire: func(env *protocol.Env[string], t protocol.Timer) {
				d.at("%v", t)
				switch t {
				case "stops the other":
					env.Stop("other")
				case "moves the other":
					env.After(time.Hour, "third")
					env.After(time.Millisecond, t)
				}
			},
		}
		h := w.host(w.config(1))
		h.add(host.Spec[string]{ID: 1, Node: n})
		h.run()
		time.Sleep(42500 * time.Microsecond)
		want := []string{
			"0s start", "0s at once", "0s negative", "15ms 7", "15ms 7", "20ms replaced", "30ms stops the other",
			"40ms moves the other", "41ms moves the other", "42ms moves the other",
		}
		if got := d.all(); !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}

// A node that sets a timer again at once still gets its messages.
func TestTimersLeaveRoomForMessages(t *testing.T) {
	inWorld(t, func(w *world) {
		expired := 0
		stop := false
		done := make(chan int, 1)
		n := &node{
			start: func(env *protocol.Env[string], _ []protocol.Record[string]) {
				for i := range 1000 {
					env.After(0, i)
				}
			},
			expire: func(env *protocol.Env[string], t protocol.Timer) {
				if expired++; !stop {
					env.After(0, t)
				}
			},
			receive: func(*protocol.Env[string], protocol.ID, string) { stop = true; done <- expired },
		}
		h := w.host(w.config(1))
		handle := h.add(host.Spec[string]{ID: 1, Node: n})
		if err := handle.Deliver(w.Context(), "enough"); err != nil {
			w.Fatal(err)
		}
		h.run()
		if n := <-done; n > 256 {
			w.Errorf("the message came after %d timers", n)
		}
	})
}

// slowTimers is what timers are to do, without any cleverness.
type slowTimers struct {
	due  map[protocol.Timer]time.Duration
	set  map[protocol.Timer]int
	sets int
}

func (s *slowTimers) carryOut(effects []protocol.Effect[string], now time.Duration) {
	for _, e := range effects {
		switch e.Kind {
		case protocol.KindAfter:
			s.sets++
			s.due[e.Timer], s.set[e.Timer] = now+e.Delay, s.sets
		case protocol.KindStop:
			delete(s.due, e.Timer)
		}
	}
}

func (s *slowTimers) first() (t protocol.Timer, ok bool) {
	for other, due := range s.due {
		if !ok || due < s.due[t] || due == s.due[t] && s.set[other] < s.set[t] {
			t, ok = other, true
		}
	}
	return t, ok
}

// Random calls of After and Stop do what the slow timers do.
func TestRandomTimers(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(w *world) {
			model := &slowTimers{due: map[protocol.Timer]time.Duration{}, set: map[protocol.Timer]int{}}
			rnd := rand.New(rand.NewPCG(seed, 0))
			var began time.Duration
			change := func(env *protocol.Env[string]) {
				for range rnd.IntN(3) {
					name := rnd.IntN(8)
					if rnd.IntN(4) == 0 {
						env.Stop(name)
					} else {
						env.After(time.Duration(rnd.IntN(5))*time.Millisecond, name)
					}
				}
				env.After(time.Duration(1+rnd.IntN(3))*time.Millisecond, "again")
				model.carryOut(env.Out, env.Now)
			}
			fired := 0
			n := &node{
				start: func(env *protocol.Env[string], _ []protocol.Record[string]) {
					began = env.Now
					change(env)
				},
				expire: func(env *protocol.Env[string], t protocol.Timer) {
					fired++
					want, ok := model.first()
					if !ok || want != t || model.due[t] != env.Now {
						w.Errorf("seed %d: at %v %v ran out, want %v, due at %v", seed, env.Now-began, t, want, model.due[want]-began)
					}
					delete(model.due, t)
					change(env)
				},
			}
			h := w.host(w.config(1))
			h.add(host.Spec[string]{ID: 1, Node: n})
			h.run()
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if err := h.end(); err != nil {
				w.Error(err)
			}
			if fired < 50 {
				w.Errorf("only %d timers ran out", fired)
			}
		})
	}
}

func TestClockAndRand(t *testing.T) {
	inWorld(t, func(w *world) {
		var draws []string
		for range 2 {
			for group := range 2 {
				cfg := w.config(1)
				h := w.host(cfg)
				n := &node{start: func(env *protocol.Env[string], _ []protocol.Record[string]) {
					if got, want := env.Now, time.Duration(time.Now().UnixNano()); got != want {
						w.Errorf("the time is %v, want %v since 1970", got, want)
					}
					draws = append(draws, fmt.Sprint(group, env.Rand.Uint64()))
				}}
				spec := host.Spec[string]{ID: 1, Node: n}
				if group == 1 {
					spec.Group = 1
				}
				h.add(spec)
				h.run()
				synctest.Wait()
				if err := h.end(); err != nil {
					w.Error(err)
				}
			}
			time.Sleep(time.Second)
		}
		if draws[0] != draws[2] || draws[1] != draws[3] || draws[0][1:] == draws[1][1:] {
			w.Errorf("nodes of one seed drew %q", draws)
		}
	})
}

// TestTimersGoByTheSteadyClock: a clock that is set, by much and in either direction, is told to
// nodes, and has timers run out neither earlier nor later.
func TestTimersGoByTheSteadyClock(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		inWorld(t, func(w *world) {
			const delay = time.Minute
			begin := time.Now()
			var set atomic.Int64
			var fired []time.Duration // since begin
			n := &node{
				start: func(env *protocol.Env[string], _ []protocol.Record[string]) { env.After(delay, "t") },
				expire: func(env *protocol.Env[string], _ protocol.Timer) {
					fired = append(fired, time.Since(begin))
					if got, want := env.Now, time.Duration(time.Now().UnixNano())+jump; got != want {
						w.Errorf("the time is %v, want %v since 1970", got, want)
					}
					env.After(delay, "t")
				},
			}
			cfg := w.config(1)
			cfg.Clock = func() time.Duration { return host.TimeOfDay() + time.Duration(set.Load()) }
			h := w.host(cfg)
			h.add(host.Spec[string]{ID: 1, Node: n})
			h.run()
			time.Sleep(delay / 2)
			set.Store(int64(jump))
			time.Sleep(2 * delay)
			synctest.Wait()
			if err := h.end(); err != nil {
				w.Error(err)
			}
			if want := []time.Duration{delay, 2 * delay}; !slices.Equal(fired, want) {
				w.Errorf("a clock that is set by %v: timers ran out after %v, want %v", jump, fired, want)
			}
		})
	}
}

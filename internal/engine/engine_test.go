package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/report"
)

// fakeTransport answers an operation after a delay, from a function.
type fakeTransport struct {
	delay  time.Duration
	answer func() (any, error)
}

func (f *fakeTransport) Start(ctx context.Context, a *Attempt) {
	go func() {
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
			return
		}
		v, err := f.answer()
		a.Finish(v, err)
	}()
}
func (f *fakeTransport) Equal(p, a any) bool      { return p == a }
func (f *fakeTransport) Same(a, b any) bool       { return a == b }
func (f *fakeTransport) Accept(v any) (any, bool) { return v, true }

func mustCallSite(t testing.TB, cfg control.CallSiteConfig) *control.CallSite {
	if cfg.Mode == control.ModeDefault {
		cfg.Mode = control.ModeOn
	}
	s, err := control.NewCallSite(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(site *control.CallSite, id string, delay time.Duration, answer func() (any, error)) *Operation {
	return &Operation{CallSite: site, Identity: id, CanSpeculate: true, Transport: &fakeTransport{delay, answer}}
}

func val(v any) func() (any, error) { return func() (any, error) { return v, nil } }

// TestChain checks the time of four dependent calls with right and wrong predictions.
func TestChain(t *testing.T) {
	for _, wrong := range []int{0, 1, 2, 4} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
				start := time.Now()
				var rep *report.Report
				got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					sum := 0
					for i := range 4 {
						p := 10 + i
						if i < wrong {
							p = 99
						}
						v, err := Perform(Predicting(ctx, p), read(site, fmt.Sprint(i, sum), 10*time.Millisecond, val(10+i)))
						if err != nil {
							return 0, err
						}
						sum += v.(int)
					}
					return sum, nil
				}, WithReport(func(r *report.Report) { rep = r }))
				if err != nil || got != 46 {
					t.Fatalf("got %v, %v", got, err)
				}
				want := 10 * time.Millisecond * time.Duration(wrong)
				if wrong < 4 {
					want += 10 * time.Millisecond
				}
				if d := time.Since(start); d != want {
					t.Errorf("took %v, want %v: %+v", d, want, rep)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

func TestFutures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		for _, inTask := range []bool{false, true} {
			for _, guess := range []int{1, 7} {
				start := time.Now()
				body := func(ctx context.Context) (int, error) {
					f := Go(ctx, func(ctx context.Context) (int, error) {
						v, err := Perform(ctx, read(site, "a", 10*time.Millisecond, val(1)))
						return v.(int), err
					}, Guess(guess))
					g := Then(f, func(ctx context.Context, v int) (int, error) {
						w, err := Perform(ctx, read(site, fmt.Sprint("b", v), 10*time.Millisecond, val(v+1)))
						return w.(int) + v, err
					})
					return g.Wait(ctx)
				}
				var got int
				var err error
				if inTask {
					got, err = Do(t.Context(), body)
				} else {
					got, err = body(t.Context())
				}
				if got != 3 || err != nil {
					t.Fatal(got, err)
				}
				want := 10 * time.Millisecond
				if guess != 1 {
					want *= 2
				}
				if d := time.Since(start); d != want {
					t.Errorf("in task %v, guess %d: %v", inTask, guess, d)
				}
				time.Sleep(time.Second)
			}
		}
	})
}

func TestCombinators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		for _, inTask := range []bool{false, true} {
			start := time.Now()
			body := func(ctx context.Context) (int, error) {
				get := func(name string, d time.Duration, v int, fail error) *Future[int] {
					return Go(ctx, func(ctx context.Context) (int, error) {
						v, err := Perform(ctx, read(site, name, d, func() (any, error) { return v, fail }))
						if err != nil {
							return 0, err
						}
						return v.(int), nil
					})
				}
				q := Quorum(2, nil, get("r1", 5*time.Millisecond, 4, nil), get("r2", 10*time.Millisecond, 4, nil),
					get("r3", 30*time.Millisecond, 4, nil))
				next := Then(q, func(ctx context.Context, v int) (int, error) {
					w, err := Perform(ctx, read(site, fmt.Sprint("n", v), 10*time.Millisecond, val(v+1)))
					if err != nil {
						return 0, err
					}
					return w.(int), err
				})
				any := Any(get("x1", time.Millisecond, 0, errors.New("no")), get("x2", 2*time.Millisecond, 100, nil))
				all, err := All(next, any).Wait(ctx)
				if err != nil {
					return 0, err
				}
				return all[0] + all[1], nil
			}
			var got int
			var err error
			if inTask {
				got, err = Do(t.Context(), body)
			} else {
				got, err = body(t.Context())
			}
			if got != 105 || err != nil {
				t.Fatal(inTask, got, err)
			}
			if d := time.Since(start); d != 15*time.Millisecond {
				t.Errorf("in task %v: %v", inTask, d)
			}
			time.Sleep(time.Second)
		}
	})
}

// instant answers at once, for the engine's own cost.
type instant struct{ v any }

func (f *instant) Start(_ context.Context, a *Attempt) { a.Finish(f.v, nil) }
func (f *instant) Equal(p, a any) bool                 { return p == a }
func (f *instant) Same(a, b any) bool                  { return a == b }
func (f *instant) Accept(v any) (any, bool)            { return v, true }

// BenchmarkEngine measures one predicted call that is confirmed, without RPC.
func BenchmarkEngine(b *testing.B) {
	site := mustCallSite(b, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
	one := any(1)
	op := &Operation{CallSite: site, Identity: "x", CanSpeculate: true, Transport: &instant{one}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			v, err := Perform(Predicting(ctx, one), op)
			return v.(int), err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoroutineAndChannel(b *testing.B) {
	for b.Loop() {
		c := make(chan int)
		go func() { c <- 1 }()
		<-c
	}
}

// A context that has ended ends a task whose function calls nevertheless: nobody waits for the
// answer.
func TestContextThatHadEnded(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			start := time.Now()
			_, err := Do(ctx, func(ctx context.Context) (any, error) {
				return Perform(ctx, read(site, "x", time.Hour, val(1)))
			})
			if took := time.Since(start); took != 0 || !errors.Is(err, context.Canceled) {
				t.Fatalf("it took %v and ended with %v", took, err)
			}
		})
	}
}

// TestCallSiteSize: a site in use takes at most 16 KB besides what its predictors keep.
func TestCallSiteSize(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector values are larger")
	}
	c := mustControl(t, control.Config{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 500
	before := heap()
	for i := range n {
		s, err := c.NewCallSite(control.CallSiteConfig{Name: fmt.Sprint("/s/", i)}, "")
		if err != nil {
			t.Fatal(err)
		}
		for j := range uint64(2000) {
			var w Watched
			w.Begin(t.Context(), Operation{CallSite: s, Transport: digesting{fakeTransport{}, j + 1}})
			w.Done("x", nil)
		}
	}
	if each := (heap() - before) / n; each > 16<<10 {
		t.Errorf("a site takes %d bytes", each)
	} else {
		t.Logf("a site takes %d bytes", each)
	}
	runtime.KeepAlive(c)
}

// TestSizeOfTask: a task is allocated at once, and its size is a good part of what a short one
// costs. The allocator has room for 3,064 bytes and a header of 8, and next for 4,096.
func TestSizeOfTask(t *testing.T) {
	if size := unsafe.Sizeof(task{}); size > 3064 {
		t.Errorf("a task has %d bytes, want at most 3064", size)
	}
}

// TestSpentAnswers: behind a barrier a task lets go of the answers that its last run
// has, and of none that a goroutine of that run, which replays another one, has yet to
// ask for.
func TestSpentAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, quick, s := newWorld(10*ms), newWorld(2*ms), testCallSites(t)
		w.kv["a"], w.kv["b"], w.kv["c"] = 1, 2, 3
		quick.kv = w.kv
		var last *task
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			last = laneOf(ctx).run.task
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				if _, err := perform(Predicting(ctx, 7), w.op(t, s.get, "get a")); err != nil {
					return err
				}
				return Barrier(ctx)
			})
			g.Go(func(ctx context.Context) error {
				if State(ctx).Run > 1 { // the other goroutine has passed its barrier
					time.Sleep(50 * ms)
				}
				for _, key := range []string{"b", "c"} {
					v, err := perform(ctx, quick.op(t, s.get, "get %s", key))
					if State(ctx).Discarded {
						return err
					}
					if err != nil || v != w.kv[key] {
						t.Errorf("run %d: got %v, %v for %s, want %v", State(ctx).Run, v, err, key, w.kv[key])
					}
				}
				return nil
			})
			return 0, g.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for u := range last.winner.tree.Uses {
			if c, ok := u.Call.Data.(*call); ok && (c.value != nil || slices.ContainsFunc(c.predictions, func(p any) bool {
				return p != nil
			})) {
				kept++
			}
		}
		if last.winner.tree.ID != 2 || kept != 0 {
			t.Errorf("run %d ended with %d answers kept, want run 2 and none", last.winner.tree.ID, kept)
		}
	})
}

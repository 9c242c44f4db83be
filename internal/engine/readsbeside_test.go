package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// full is a server that runs nothing for speculative callers, and says so after a while.
type full struct{ fakeTransport }

func (f *full) Start(ctx context.Context, a *Attempt) {
	go func() {
		if a.Speculative() {
			time.Sleep(f.delay)
			if err := a.Hold("the server is full"); err != nil {
				a.Finish(nil, err)
				return
			}
		}
		f.fakeTransport.Start(ctx, a)
	}()
}

// TestReadsBesideAGuess: a goroutine goes on with a guess at a read that never answers. Beside it
// another one reads with a guess from a server that takes no calls of speculative callers. Plain
// code has that answer long before the task's context ends, and so it has here, although the read
// counts as standing on the first one's guess: since a context of its code had ended, which may be
// the work of anybody in the run, or since both share a lane.
func TestReadsBesideAGuess(t *testing.T) {
	type reads struct{ never, some, guessed func(context.Context) }
	programs := map[string]func(ctx context.Context, r reads){
		"behind a context that ended": func(ctx context.Context, r reads) {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error { r.never(ctx); return nil })
			g.Go(func(ctx context.Context) error {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				time.Sleep(ms)
				r.some(ended)
				r.guessed(ctx)
				return nil
			})
			_ = g.Wait()
		},
		"in a lane that both share": func(ctx context.Context, r reads) {
			var wg sync.WaitGroup
			wg.Go(func() {
				r.some(ctx)
				r.guessed(ctx)
			})
			time.Sleep(ms)
			r.never(ctx)
			wg.Wait()
		},
	}
	servers := map[string]*Operation{
		"plain": {Transport: &fakeTransport{10 * ms, val(1)}},
		"full":  {Transport: &full{fakeTransport{10 * ms, val(1)}}, CanSpeculate: true},
	}
	for name, program := range programs {
		for server, op := range servers {
			t.Run(name+", "+server, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					got, err := Do(ctx, func(ctx context.Context) (any, error) {
						var v any
						var err error
						program(ctx, reads{
							never: func(ctx context.Context) {
								_, _ = Perform(Predicting(ctx, 1), read(site, "never", time.Hour, val(1)))
							},
							some: func(ctx context.Context) { _, _ = Perform(ctx, read(site, "some", 10*ms, val(1))) },
							guessed: func(ctx context.Context) {
								v, err = Perform(Predicting(ctx, 1), &Operation{CallSite: site, Identity: "guessed",
									CanSpeculate: op.CanSpeculate, Transport: op.Transport})
							},
						})
						return v, err
					})
					if got != 1 || err != nil {
						t.Errorf("got %v, %v; want 1", got, err)
					}
				})
			})
		}
	}
}

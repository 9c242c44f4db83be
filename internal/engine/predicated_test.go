package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// slow is a transport that takes a while to begin, and counts how many do at once.
type slow struct {
	fakeTransport
	beginning, most *atomic.Int32
}

func (s *slow) Start(ctx context.Context, a *Attempt) {
	n := s.beginning.Add(1)
	s.most.Store(max(s.most.Load(), n))
	time.Sleep(ms)
	s.beginning.Add(-1)
	s.fakeTransport.Start(ctx, a)
}

// TestBeginsInOrder: attempts at predicated calls of a domain begin one after the other, whoever
// makes them; those of two domains do not wait for each other.
func TestBeginsInOrder(t *testing.T) {
	for _, test := range []struct {
		domains int
		most    int32
	}{{1, 1}, {3, 3}} {
		synctest.Test(t, func(t *testing.T) {
			site := mustCallSite(t, control.CallSiteConfig{Name: "/s/put", Effect: control.EffectPredicated})
			domains := make([]Domain, test.domains)
			var beginning, most atomic.Int32
			var futures []*Future[int]
			for i := range 3 {
				futures = append(futures, Go(t.Context(), func(ctx context.Context) (int, error) {
					return perform(ctx, &Operation{CallSite: site, Identity: "put", CanSpeculate: true,
						Domain: &domains[i%test.domains], Transport: &slow{fakeTransport{ms, val(i)}, &beginning, &most}})
				}))
			}
			for i, f := range futures {
				if v, err := f.Wait(t.Context()); v != i || err != nil {
					t.Error(v, err)
				}
			}
			if got := most.Load(); got != test.most {
				t.Errorf("%d begin at once, want %d", got, test.most)
			}
		})
	}
}

// TestAssumedHasBegun: what an attempt assumes began before it, of whatever class its call is.
func TestAssumedHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		put := mustCallSite(t, control.CallSiteConfig{Name: "/s/put", Effect: control.EffectPredicated})
		var domain Domain
		var beginning, most atomic.Int32
		op := func(site *control.CallSite, ahead bool) *Operation {
			return &Operation{CallSite: site, Identity: "x", CanSpeculate: ahead, Domain: &domain,
				Transport: &slow{fakeTransport{ms, val(1)}, &beginning, &most}}
		}
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 1), read(get, "a", 10*ms, val(1))); err != nil {
				return 0, err
			}
			if _, err := perform(Predicting(ctx, 1), op(get, false)); err != nil { // it is held until then
				return 0, err
			}
			time.Sleep(10*ms + ms/2) // until it is about to begin
			return perform(ctx, op(put, true))
		})
		if got := most.Load(); err != nil || got != 1 {
			t.Errorf("%v, and %d begin at once", err, got)
		}
	})
}

// TestPredicatedWithoutASession: a call of the class that has no domain is one that takes effect at
// once.
func TestPredicatedWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		put := mustCallSite(t, control.CallSiteConfig{Name: "/s/put", Effect: control.EffectPredicated})
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 1), read(get, "a", 10*ms, val(1))); err != nil {
				return 0, err
			}
			return perform(ctx, read(put, "b", 10*ms, val(1)))
		})
		if took := time.Since(start); err != nil || took != 20*ms {
			t.Errorf("%v after %v", err, took)
		}
	})
}

package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/store"
)

// TestHooksHaveNoLock: what a read's actual result sets off, a program's OnRollback too, may read
// on.
func TestHooksHaveNoLock(t *testing.T) {
	v := newValidation(&attempt{}, nil)
	v.add("k", store.Value{})
	told := false
	ended := v.end("k", func() {
		if told = v.mu.TryLock(); told {
			v.mu.Unlock()
		}
	})
	if !ended || !told || v.telling != 0 {
		t.Errorf("the read has ended: %v; the lock was free: %v; %d are being told", ended, told, v.telling)
	}
}

// guessed is a read whose guess is there at once; actual has it finish.
type guessed struct {
	driver.Transport
	actual func(finish func())
}

func (g guessed) Start(_ context.Context, a *driver.Attempt) {
	a.Predict(store.Value{})
	go g.actual(func() { a.Finish(store.Value{}, nil) })
}

// committer commits at once.
type committer struct{ Attempt }

func (committer) Commit(context.Context, Submission) Decision {
	return Decision{Outcome: store.Outcome{Verdict: store.Committed}}
}

// TestCommitLeavesOnceReadsAreTold: a function may return while the engine is being told of one of
// its reads. The commit leaves as soon as it has been, and does not wait for the other reads.
func TestCommitLeavesOnceReadsAreTold(t *testing.T) {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "read", Mode: control.ModeOn,
		Effect: control.EffectNone})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		v := newValidation(&attempt{sites: committer{}}, nil)
		v.ctx, v.cancel = context.WithCancelCause(t.Context())
		defer v.cancel(nil)
		slow := map[store.Key]func(finish func()){
			"told": func(finish func()) { v.end("told", func() { time.Sleep(time.Millisecond); finish() }) },
			"open": func(finish func()) {
				select {
				case <-v.settled:
				case <-time.After(100 * time.Millisecond):
				}
				finish()
			},
		}
		start, kept := time.Now(), 0
		_, err := foresay.Do(v.ctx, func(ctx context.Context) (int, error) {
			for _, key := range []store.Key{"told", "open"} {
				v.add(key, store.Value{})
				if _, err := driver.Perform(ctx, &driver.Operation{CallSite: site, Identity: string(key), CanSpeculate: true,
					Transport: guessed{&reading{}, slow[key]}}); err != nil {
					return 0, err
				}
			}
			synctest.Wait() // it is being told
			v.submit(ctx, []store.Read{{Key: "open"}, {Key: "told"}}, nil, func() { kept++ })
			return 0, nil
		})
		if took := time.Since(start); err != nil || kept != 1 || took != time.Millisecond {
			t.Errorf("the commit has left %d times and is known after %v (%v), want one after 1ms", kept, took, err)
		}
	})
}

package engine

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// recording is a context that notes by which keys it is asked.
type recording struct {
	context.Context
	keys []any
}

func (c *recording) Value(key any) any {
	c.keys = append(c.keys, key)
	return c.Context.Value(key)
}

// TestKeyOfPackageContext: runContext, light, outside and belated answer for the context that they
// stand for when package context asks them by its private key, which they know by its type. This
// reports whether the Go that runs the test still asks so, and by no other key.
func TestKeyOfPackageContext(t *testing.T) {
	base, cancel := context.WithCancelCause(t.Context())
	open, ended := &recording{Context: base}, &recording{Context: base}
	for name, f := range map[string]func(){
		"WithCancel":      func() { _, stop := context.WithCancel(open); stop() },
		"WithCancelCause": func() { _, stop := context.WithCancelCause(open); stop(nil) },
		"WithTimeout":     func() { _, stop := context.WithTimeout(open, time.Hour); stop() },
		"AfterFunc":       func() { context.AfterFunc(open, func() {})() },
	} {
		open.keys = nil
		f()
		open.check(t, name)
	}
	cancel(nil)
	_ = context.Cause(ended)
	ended.check(t, "Cause")
}

// check fails the test unless all that a function of package context asked by is a *int.
func (c *recording) check(t *testing.T, function string) {
	t.Helper()
	if len(c.keys) == 0 {
		t.Errorf("%s asks nothing", function)
	}
	for _, key := range c.keys {
		if _, ok := key.(*int); !ok {
			t.Errorf("%s of %s asks by a key of type %T, not *int: the engine's contexts must answer that", function,
				runtime.Version(), key)
		}
	}
}

// TestContextsOfRuns: what is derived from a run's context ends with it, for its cause, and without
// a goroutine that waits for that.
func TestContextsOfRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/s/a", Effect: control.EffectNone})
		causes := make(chan error, 3)
		got, err := Do(t.Context(), func(ctx context.Context) (any, error) {
			v, err := Perform(Predicting(ctx, "wrong"), read(site, "a", 10*ms, val("right")))
			if v != "wrong" {
				return v, err
			}
			before := runtime.NumGoroutine()
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			late, stop := context.WithTimeout(child, time.Hour)
			defer stop()
			if after := runtime.NumGoroutine(); after > before {
				t.Errorf("%d goroutines wait for the run's end", after-before)
			}
			<-late.Done()
			for _, c := range []context.Context{ctx, child, late} {
				causes <- context.Cause(c)
			}
			return v, nil
		})
		if got != "right" || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		for range cap(causes) {
			if err := <-causes; !errors.Is(err, ErrMisspeculated) {
				t.Errorf("a context of a discarded run ended with the cause %v", err)
			}
		}
	})
}

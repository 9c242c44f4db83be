package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandlerOfPlainCall: a handler that has nothing to record runs as in a plain call,
// where a Do of its own may speculate, and it may predict all the same.
func TestHandlerOfPlainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"], w.kv["b"] = 1, 2
		var early, hooks []any
		h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y", Predicted: func(v any) { early = append(early, v) }})
		start := time.Now()
		var late context.Context
		v, err := h.Run(func(ctx context.Context) (any, error) {
			late = ctx
			if InTask(ctx) {
				t.Error("it is a task")
			}
			OnCommit(ctx, func() { hooks = append(hooks, "commit") })
			if err := Predict(ctx, 41); err != nil {
				return nil, err
			}
			return Do(ctx, func(ctx context.Context) (any, error) {
				a, err := perform(Predicting(ctx, 1), w.op(t, s.get, "get a"))
				if err != nil {
					return nil, err
				}
				if err := Predict(ctx, 42); err != nil {
					return nil, err
				}
				b, err := perform(ctx, w.op(t, s.get, "get b"))
				return a + b, err
			})
		})
		if v != 3 || err != nil || time.Since(start) != 10*ms {
			t.Errorf("Run: %v, %v after %v; want 3 after one call's time", v, err, time.Since(start))
		}
		if err := Predict(late, 43); err != nil {
			t.Errorf("Predict, when the handler has returned: %v", err)
		}
		if want := []any{41, 42}; !slices.Equal(early, want) {
			t.Errorf("early answers %v, want %v", early, want)
		}
		h.Confirm()
		h.Abort()
		if err := h.Finish(); err != nil || h.Tentative() || len(hooks) != 1 {
			t.Errorf("Finish: %v, tentative %v, hooks %v", err, h.Tentative(), hooks)
		}
	})
}

// TestPanicOfPlainCall: the panic of such a handler is its caller's to recover, as it is.
func TestPanicOfPlainCall(t *testing.T) {
	h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y"})
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("panicked with %v, want the value itself", p)
		}
	}()
	_, _ = h.Run(func(context.Context) (any, error) { panic("boom") })
}

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestErrorsNameTheCall: the errors of the engine's own name the task, the call
// and its peer.
func TestErrorsNameTheCall(t *testing.T) {
	at := func(op *Operation) *Operation { op.Conn = "dns:///shop"; return op }
	tests := []struct {
		name    string
		program func(ctx context.Context, w *world, s sites) (int, error)
		is      error
		want    string
	}{
		{"cancelled task", func(ctx context.Context, w *world, s sites) (int, error) {
			if v, err := perform(ctx, at(w.op(t, s.get, "get a"))); err != nil {
				return v, err
			}
			return perform(Predicting(ctx, 5), at(w.op(t, s.get, "get b")))
		}, context.Canceled, context.Canceled.Error()}, // the call's own, as in plain code
		{"cancelled call on a guess", func(ctx context.Context, w *world, s sites) (int, error) {
			inner, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*ms, cancel)
			if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get b")); err != nil {
				return 0, err
			}
			return perform(inner, at(w.op(t, s.put, "put a 1")))
		}, context.Canceled, `foresay: task "pay", /kv/Put (call 1 of its kind) at dns:///shop: gave up waiting: context canceled`},
		{"call with an ended context", func(ctx context.Context, w *world, s sites) (int, error) {
			inner, cancel := context.WithCancel(ctx)
			cancel()
			return perform(inner, at(w.op(t, s.get, "get a")))
		}, context.Canceled, `foresay: task "pay", /kv/Get at dns:///shop: gave up waiting: context canceled`},
		{"divergence", func(ctx context.Context, w *world, s sites) (int, error) {
			for range 2 - min(State(ctx).Run-1, 1) {
				if _, err := perform(ctx, at(w.op(t, s.put, "put a 1"))); err != nil {
					return 0, err
				}
			}
			return perform(Predicting(ctx, 99), w.op(t, s.get, "get a"))
		}, ErrDiverged, ErrDiverged.Error() + `: task "pay", /kv/Put (call 2 of its kind) at dns:///shop`},
		{"divergence from an act", func(ctx context.Context, w *world, s sites) (int, error) {
			if State(ctx).Run == 1 {
				if _, err := Act(ctx, "mail", func(context.Context) (int, error) { return 0, nil }); err != nil {
					return 0, err
				}
			}
			return perform(Predicting(ctx, 99), w.op(t, s.get, "get a"))
		}, ErrDiverged, ErrDiverged.Error() + `: task "pay", Act of key "mail"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(10*ms), testCallSites(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(15*ms, cancel)
				if tt.is == ErrDiverged {
					ctx = t.Context()
				}
				_, err := Do(ctx, func(ctx context.Context) (int, error) { return tt.program(ctx, w, s) }, WithName("pay"))
				if !errors.Is(err, tt.is) || err.Error() != tt.want {
					t.Errorf("got error %v\nwant %s", err, tt.want)
				}
			})
		})
	}
}

package replica

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

const (
	nearTime = time.Millisecond
	farTime  = 50 * time.Millisecond
	workTime = 30 * time.Millisecond
)

type answer struct {
	text    string
	version int
}

// answering returns a function that takes a while, unless its context ends.
func answering(
	after time.Duration, a answer, err error, asked *atomic.Int64,
) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, _ string) (answer, error) {
		asked.Add(1)
		select {
		case <-time.After(after):
			return a, err
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

func TestRead(t *testing.T) {
	fresh, stale, unavailable := answer{"new", 2}, answer{"old", 1}, errors.New("unavailable")
	panics := func(context.Context, string) (answer, error) { panic("oops") }
	type fn = func(context.Context, string) (answer, error)
	var nearAsked, farAsked atomic.Int64
	near := func(after time.Duration, a answer, err error) fn { return answering(after, a, err, &nearAsked) }
	far := func(a answer, err error) fn { return answering(farTime, a, err, &farAsked) }
	tests := []struct {
		name      string
		near, far fn
		mode      control.Mode
		plain     bool
		want      answer
		err       error
		took      time.Duration
		runs      int
		nearAsked int64
	}{
		{name: "near is right", near: near(nearTime, fresh, nil), far: far(fresh, nil), want: fresh, took: farTime, runs: 1,
			nearAsked: 1},
		{name: "near is stale", near: near(nearTime, stale, nil), far: far(fresh, nil), want: fresh, took: farTime + workTime,
			runs: 2, nearAsked: 1},
		{name: "of the same version", near: near(nearTime, answer{"NEW", 2}, nil), far: far(fresh, nil),
			want: answer{"NEW", 2}, took: farTime, runs: 1, nearAsked: 1},
		{name: "near fails", near: near(nearTime, stale, unavailable), far: far(fresh, nil), want: fresh, took: farTime +
			workTime, runs: 1, nearAsked: 1},
		{name: "near panics", near: panics, far: far(fresh, nil), want: fresh, took: farTime + workTime, runs: 1},
		{name: "near hangs", near: near(time.Hour, stale, nil), far: far(fresh, nil), want: fresh, took: farTime + workTime,
			runs: 1, nearAsked: 1},
		{name: "far fails", near: near(nearTime, fresh, nil), far: far(fresh, unavailable), err: unavailable, took: farTime,
			runs: 2, nearAsked: 1},
		{name: "no predictions", near: near(nearTime, fresh, nil), far: far(fresh, nil), mode: control.ModeOff, want: fresh,
			took: farTime + workTime, runs: 1},
		{name: "observed", near: near(nearTime, fresh, nil), far: far(fresh, nil), mode: control.ModeObserve, want: fresh,
			took: farTime + workTime, runs: 1},
		{name: "plain context", near: near(nearTime, fresh, nil), far: far(fresh, nil), plain: true, want: fresh,
			took: farTime + workTime, runs: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nearAsked.Store(0)
				farAsked.Store(0)
				cfg := NearFar(tt.near, tt.far)
				cfg.Name, cfg.Mode, cfg.Equal = "test", control.ModeOn, SameVersion(func(a answer) int { return a.version })
				if tt.mode != 0 {
					cfg.Mode = tt.mode
				}
				r, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				var runs atomic.Int64
				f := func(ctx context.Context) (answer, error) {
					runs.Add(1)
					a, err := r.Read(ctx, "k")
					if err != nil {
						return a, err
					}
					time.Sleep(workTime)
					return a, nil
				}
				start, got := time.Now(), answer{}
				if tt.plain {
					got, err = f(t.Context())
				} else {
					got, err = foresay.Do(t.Context(), f)
				}
				if took := time.Since(start); got != tt.want || !errors.Is(err, tt.err) || took != tt.took {
					t.Errorf("%v, %v after %v; want %v, %v after %v", got, err, took, tt.want, tt.err, tt.took)
				}
				if int(runs.Load()) != tt.runs || nearAsked.Load() != tt.nearAsked || farAsked.Load() != 1 {
					t.Errorf("%d runs, near asked %d times and far %d; want %d, %d and 1", runs.Load(), nearAsked.Load(),
						farAsked.Load(), tt.runs, tt.nearAsked)
				}
			})
		})
	}
}

// TestControl: a Control switches the reads by their name.
func TestControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, err := control.New(control.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var nearAsked, farAsked atomic.Int64
		cfg := NearFar(answering(nearTime, answer{"a", 1}, nil, &nearAsked), answering(farTime, answer{"a", 1}, nil,
			&farAsked))
		cfg.Name, cfg.Control = "test", ctl
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i, mode := range []control.Mode{control.ModeDefault, control.ModeOn, control.ModeOff} {
			if mode != control.ModeDefault {
				if err := ctl.SetMode("test", mode, 0); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := foresay.Do(t.Context(), func(ctx context.Context) (answer, error) {
				return r.Read(ctx, "k")
			}); err != nil {
				t.Fatal(err)
			}
			if want := int64(min(i, 1)); nearAsked.Load() != want || farAsked.Load() != int64(i+1) {
				t.Errorf("after mode %v: near was asked %d times, far %d", mode, nearAsked.Load(), farAsked.Load())
			}
		}
	})
}

func TestFarPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := NearFar(
			func(context.Context, string) (int, error) { return 1, nil },
			func(context.Context, string) (int, error) { panic("oops") })
		cfg.Name, cfg.Mode = "test", control.ModeOn
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if p, ok := recover().(*foresay.PanicError); !ok || !strings.Contains(p.Error(), "oops") {
				t.Errorf("Do panicked with %v", p)
			}
		}()
		n, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return r.Read(ctx, "k") })
		t.Errorf("Do returned %d, %v", n, err)
	})
}

// TestOwnership: a request may be changed as soon as Read has returned, and each
// run has an answer of its own.
func TestOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Pointer[string]
		near := wrapperspb.String("a")
		cfg := NearFar(
			func(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error) { return near, nil },
			func(_ context.Context, req *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
				time.Sleep(farTime)
				asked.Store(&req.Value)
				return wrapperspb.String("b"), nil
			})
		cfg.Name, cfg.Mode = "test", control.ModeOn
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
			req := wrapperspb.String("k")
			a, err := r.Read(ctx, req)
			if err != nil {
				return "", err
			}
			req.Value = "changed"
			a.Value += "!"
			b, err := r.Read(ctx, wrapperspb.String("k"))
			if err != nil {
				return "", err
			}
			return a.GetValue() + b.GetValue(), nil
		})
		if got != "b!b" || err != nil || *asked.Load() != "k" {
			t.Errorf("got %q, %v; far was asked for %q", got, err, *asked.Load())
		}
		if !proto.Equal(near, wrapperspb.String("a")) {
			t.Errorf("the near answer became %v", near)
		}
	})
}

func TestConfig(t *testing.T) {
	type pair struct{ a, b string }
	read := func(context.Context, pair) (int, error) { return 0, nil }
	for want, cfg := range map[string]Config[pair, int]{
		"Name is empty": {Near: read, Far: read},
		"Near is nil":   {Name: "n", Far: read},
		"Far is nil":    {Name: "n", Near: read},
		"Key is nil":    {Name: "n", Near: read, Far: read},
		"unknown mode":  {Name: "n", Near: read, Far: read, Key: func(p pair) string { return p.a + p.b }, Mode: 99},
		"Width": {Name: "n", Near: read, Far: read, Key: func(p pair) string {
			return p.a
		}, Limits: control.CallSiteLimits{Width: -1}},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}

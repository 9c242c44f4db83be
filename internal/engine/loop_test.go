package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// TestLoop: the calls of all turns are under way at once as long as guesses are right. A wrong
// guess repeats the turn that took it and those that began with what it came to, once each, and
// costs one call's time; a turn that is confirmed by then is not repeated.
func TestLoop(t *testing.T) {
	for _, test := range []struct {
		name  string
		depth int
		wrong int // the turn whose guess is wrong, -1: none
		want  time.Duration
		runs  []int
	}{
		{"right", 32, -1, 10 * ms, []int{1, 1, 1, 1, 1, 1}},
		{"wrong", 32, 3, 20 * ms, []int{1, 1, 1, 2, 2, 2}},
		{"two at a time", 2, -1, 30 * ms, []int{1, 1, 1, 1, 1, 1}},
		{"one at a time", 1, 3, 60 * ms, []int{1, 1, 1, 2, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
				var mu sync.Mutex
				runs := make([]int, 6)
				var committed []int
				start := time.Now()
				type state struct{ turn, sum int }
				got, err := Loop(t.Context(), state{}, func(ctx context.Context, s state) (state, bool, error) {
					mu.Lock()
					runs[s.turn]++
					mu.Unlock()
					OnCommit(ctx, func() { committed = append(committed, s.turn) })
					guess := s.sum + 1
					if s.turn == test.wrong {
						guess++
					}
					v, err := perform(Predicting(ctx, guess), read(site, strconv.Itoa(s.sum), 10*ms, val(s.sum+1)))
					return state{s.turn + 1, v}, s.turn == 5, err
				}, WithLimits(control.Limits{Depth: test.depth, MinSaving: -1}))
				if took := time.Since(start); got != (state{6, 6}) || err != nil || took != test.want {
					t.Errorf("got %v, %v after %v, want 6 turns in %v", got, err, took, test.want)
				}
				if !slices.Equal(runs, test.runs) || !slices.Equal(committed, []int{0, 1, 2, 3, 4, 5}) {
					t.Errorf("turns executed %v times, want %v; committed in the order %v", runs, test.runs, committed)
				}
			})
		})
	}
}

// TestLoopEnds: with the error or the panic of the first turn that has one, when nothing of it
// executes any more; and at once if its context ends.
func TestLoopEnds(t *testing.T) {
	bad := errors.New("bad")
	for name, end := range map[string]func() error{
		"error": func() error { return bad }, "panic": func() error { panic(bad) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
				var err error
				func() {
					defer func() {
						if p, ok := recover().(*PanicError); ok {
							err = p
						}
					}()
					_, err = Loop(t.Context(), 0, func(ctx context.Context, turn int) (int, bool, error) {
						v, err := perform(Predicting(ctx, turn+1), read(site, strconv.Itoa(turn), 10*ms, val(turn+1)))
						if turn == 3 && err == nil {
							err = end()
						}
						return v, turn == 9, err
					})
				}()
				if !errors.Is(err, bad) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		ctx, cancel := context.WithTimeout(t.Context(), 35*ms)
		defer cancel()
		_, err := Loop(ctx, 0, func(ctx context.Context, turn int) (int, bool, error) {
			v, err := perform(ctx, read(site, "get", 10*ms, val(turn+1)))
			return v, false, err
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
	n, err := Do(t.Context(), func(ctx context.Context) (int, error) { // a plain loop
		return Loop(ctx, 0, func(ctx context.Context, turn int) (int, bool, error) {
			if State(ctx).Run != 1 {
				t.Error("not in the task")
			}
			return turn + 1, turn == 4, nil
		})
	})
	if n != 5 || err != nil {
		t.Error(n, err)
	}
}

// TestLoopForgets: a loop keeps the states of turns that are not confirmed, and of few others,
// however many turns there were.
func TestLoopForgets(t *testing.T) {
	type state struct {
		turn int
		_    [1 << 10]byte
	}
	const turns, depth = 600, 4
	var live atomic.Int32
	site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
	most := int32(0)
	_, err := Loop(t.Context(), &state{}, func(ctx context.Context, s *state) (*state, bool, error) {
		v, err := perform(Predicting(ctx, s.turn+1), read(site, strconv.Itoa(s.turn), ms/5, val(s.turn+1)))
		next := &state{turn: v}
		live.Add(1)
		runtime.AddCleanup(next, func(int) { live.Add(-1) }, 0)
		if s.turn%100 == 99 {
			for range 100 { // cleanups have a goroutine of their own
				if runtime.GC(); live.Load() < 10*depth {
					break
				}
				time.Sleep(time.Millisecond)
			}
			most = max(most, live.Load())
		}
		return next, v == turns, err
	}, WithLimits(control.Limits{Depth: depth}))
	if err != nil || most >= 10*depth {
		t.Errorf("%v, %d states are kept", err, most)
	}
}

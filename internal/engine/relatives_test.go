package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// mixed is code in which a goroutine of a Group or of a future knows what the lane of
// its effect does not stand on.
type mixed struct {
	name string
	code func(ctx context.Context, m *mixture) error
}

// mixture makes the calls of mixed code.
type mixture struct {
	get, put *control.CallSite
	guesses  []any

	mu  sync.Mutex
	log []int
}

// read is a call that takes so many milliseconds and answers 1, for which the test guesses.
func (m *mixture) read(ctx context.Context, takes int) int {
	v, _ := Perform(Predicting(ctx, m.guesses...),
		read(m.get, fmt.Sprint("r", takes), time.Duration(takes)*time.Millisecond, val(1)))
	n, _ := v.(int)
	return n
}

// write has an effect, and takes so many milliseconds.
func (m *mixture) write(ctx context.Context, v, takes int) error {
	_, err := Perform(ctx, read(m.put, fmt.Sprint("w", takes, v), time.Duration(takes)*time.Millisecond,
		func() (any, error) {
			m.effect(v)
			return 0, nil
		}))
	return err
}

func (m *mixture) effect(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, v)
}

func mixedPrograms() []mixed {
	type C = context.Context
	inGroup := func(name string, f func(outer, inner C, m *mixture) error) mixed {
		return mixed{name + ", group", func(ctx C, m *mixture) error {
			g := NewGroup(ctx)
			g.Go(func(x C) error { return f(ctx, x, m) })
			return g.Wait()
		}}
	}
	return []mixed{
		inGroup("reads, and writes with the outer context", func(outer, inner C, m *mixture) error {
			return m.write(outer, m.read(inner, 50), 5)
		}),
		inGroup("reads with the outer context, and writes", func(outer, inner C, m *mixture) error {
			return m.write(inner, m.read(outer, 50), 5)
		}),
		inGroup("acts with the outer context", func(outer, inner C, m *mixture) error {
			v := m.read(inner, 50)
			_, err := Act(outer, "k", func(context.Context) (int, error) { m.effect(v); return 0, nil })
			return err
		}),
		inGroup("a group within", func(outer, inner C, m *mixture) error {
			g := NewGroup(inner)
			g.Go(func(x C) error { return m.write(outer, m.read(x, 50), 5) })
			return g.Wait()
		}),
		inGroup("a goroutine within", func(outer, inner C, m *mixture) (err error) {
			v := m.read(inner, 50)
			var wg sync.WaitGroup
			wg.Go(func() { err = m.write(outer, v, 5) })
			wg.Wait()
			return err
		}),
		{"a future", func(ctx C, m *mixture) error {
			_, err := Go(ctx, func(x C) (int, error) { return 0, m.write(ctx, m.read(x, 50), 5) }).Wait(ctx)
			return err
		}},
		{"a future of a future", func(ctx C, m *mixture) error {
			f := Go(ctx, func(x C) (int, error) { return m.read(x, 50), nil })
			_, err := Then(f, func(x C, v int) (int, error) { return 0, m.write(ctx, v, 5) }).Wait(ctx)
			return err
		}},
		{"a channel", func(ctx C, m *mixture) error {
			ch := make(chan int, 2)
			g := NewGroup(ctx)
			for i := range 2 {
				g.Go(func(x C) error { ch <- m.read(x, 50) * (i + 1); return nil })
			}
			err := m.write(ctx, <-ch+<-ch, 5)
			_ = g.Wait()
			return err
		}},
		{"a combination", func(ctx C, m *mixture) error {
			v := m.read(ctx, 50)
			f := Go(ctx, func(C) (int, error) { return 1, nil })
			w := Go(ctx, func(x C) (int, error) { return 1, m.write(x, v, 5) }, Guess(1))
			_, err := Quorum(2, nil, f, w).Wait(ctx)
			return err
		}},
		{"no need to wait", func(ctx C, m *mixture) error {
			g := NewGroup(ctx)
			g.Go(func(x C) error { return m.write(x, m.read(x, 50), 5) })
			time.Sleep(time.Millisecond)
			_ = m.write(ctx, 7, 20)
			_ = m.write(ctx, 8, 30)
			return g.Wait()
		}},
		{"a member that need not wait", func(ctx C, m *mixture) error {
			g := NewGroup(ctx)
			g.Go(func(x C) error {
				time.Sleep(time.Millisecond)
				return m.write(x, 7, 50)
			})
			v := m.read(ctx, 50)
			_ = g.Wait()
			return m.write(ctx, v, 5)
		}},
	}
}

// run runs the code and returns its effects, how long it took, and how it ended.
func (p mixed) run(t *testing.T, guesses ...any) (log []int, took time.Duration, err error) {
	m := &mixture{
		get:     mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone}),
		put:     mustCallSite(t, control.CallSiteConfig{Name: "/s/put", Effect: control.EffectImmediate}),
		guesses: guesses,
	}
	start := time.Now()
	_, err = Do(t.Context(), func(ctx context.Context) (int, error) { return 0, p.code(ctx, m) })
	took = time.Since(start)
	time.Sleep(time.Second)
	slices.Sort(m.log)
	return m.log, took, err
}

// codeTakes is what the code itself takes at most, which is run once more.
const codeTakes = time.Millisecond

// TestGuessesOfRelatives checks that no effect comes of a wrong guess, whatever context
// the code uses that has it, and that the code takes no longer than without guesses, but
// for the time after which it is run once more.
func TestGuessesOfRelatives(t *testing.T) {
	for _, p := range mixedPrograms() {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want, plain, err := p.run(t)
				if err != nil || len(want) == 0 {
					t.Fatal(want, err)
				}
				for _, guesses := range [][]any{{1}, {2}, {2, 1}, {1, 2}, {2, 3}} {
					log, took, err := p.run(t, guesses...)
					if err != nil || !slices.Equal(log, want) {
						t.Errorf("guessed %v: %v, %v; want %v", guesses, log, err, want)
					}
					if took > plain+patience+codeTakes {
						t.Errorf("guessed %v: took %v, plainly %v", guesses, took, plain)
					}
				}
			})
		})
	}
}

package randtest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

// This file is about programs whose calls are not guessed: Do makes no tasks for them, or only once
// they ask for what only tasks have.

// NewUnguessed returns the scenario of a seed with clients that only observe, or do not even that.
func NewUnguessed(seed uint64) *Scenario {
	sc := NewScenario(seed, false)
	mode := []control.Mode{control.ModeOff, control.ModeObserve}[rand.New(rand.NewPCG(seed, 0x7a5c)).IntN(2)]
	sc.knobs.Unguessed = mode
	return sc
}

// RunUnguessed checks so many of them.
func RunUnguessed(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewUnguessed)
}

// habitually is how often Do is called with a function that calls nothing before it makes no task
// of it.
const habitually = 64

// unguessed executes a task whose function Do has come to know as one without guesses.
func (w *world) unguessed(ctx context.Context, t *task) (digest string, err error) {
	f := func(practice bool) func(ctx context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if practice {
				return "", nil
			}
			return w.runLink(ctx, t, 0, "")
		}
	}
	for range habitually {
		if digest, err = foresay.Do(ctx, f(true)); err != nil {
			return digest, err
		}
	}
	return foresay.Do(ctx, f(false), foresay.WithName(t.name), foresay.WithLimits(w.sc.knobs.Limits))
}

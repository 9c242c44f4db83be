package specgrpc_test

import (
	"testing"

	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/randtest"
	"github.com/foresay/foresay/internal/seed"
)

// The random tests try few seeds each time, the same ones: `make soak` has the others.

// TestRandomPrograms: a speculative execution of a random program gives the
// results and has the effects of a sequential one.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	randtest.Run(t, false, seed.Count(t, 200))
}

// TestRandomUnguessed: the same of programs whose calls are not guessed, which need no tasks.
func TestRandomUnguessed(t *testing.T) {
	randtest.RunUnguessed(t, seed.Count(t, 100))
}

// TestRandomFaults: when connections, servers or the caller fail, it gives those
// or an error, its effects are the beginning of those, and nothing stays pending.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	randtest.Run(t, true, seed.Count(t, 150))
}

// TestRandomTiming: a speculative execution takes no longer than a sequential one
// and what speculation may cost, on fast networks and busy machines, too, however
// many guesses are wrong; and nothing in it is ever stuck.
func TestRandomTiming(t *testing.T) {
	t.Parallel()
	randtest.RunTimed(t, seed.Count(t, 120))
}

// TestRandomRetried: where few streams are admitted and gRPC makes calls again whose first attempts
// fail, no call waits for a stream that calls hold which wait for it.
func TestRandomRetried(t *testing.T) {
	t.Parallel()
	randtest.RunRetried(t, seed.Count(t, 80))
}

// TestRandomMutations: each rule that can be removed from the outside is missed.
func TestRandomMutations(t *testing.T) {
	if race.Enabled {
		t.Skip("mutations are caught or not without the race detector, which makes the hunt ten times slower")
	}
	t.Parallel()
	for _, m := range randtest.Mutations() {
		t.Run(m.Name, func(t *testing.T) { randtest.Catch(t, m, 3000) })
	}
}

// TestRandomWorlds: small programs, each around one rule, in many worlds.
func TestRandomWorlds(t *testing.T) {
	t.Parallel()
	randtest.RunSketches(t, seed.Count(t, 16))
}

// TestRandomEnds: the same of programs whose own context ends before they do, and which go on.
func TestRandomEnds(t *testing.T) {
	t.Parallel()
	randtest.RunEnded(t, seed.Count(t, 80))
}

// TestRandomCrowds: the same as TestRandomPrograms of goroutines that share the task's
// context, make calls with it and start Groups.
func TestRandomCrowds(t *testing.T) {
	t.Parallel()
	randtest.RunCrowded(t, seed.Count(t, 80))
}

// TestRandomFaultyCrowds: the same as TestRandomFaults of programs with such goroutines.
func TestRandomFaultyCrowds(t *testing.T) {
	t.Parallel()
	randtest.RunFaultyCrowds(t, seed.Count(t, 40))
}

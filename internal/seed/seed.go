// Package seed says which seeds random tests play, and how many; and which cases of a grid others
// do. A test counts up from the first; one that fails prints the seed that repeats it.
package seed

import (
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/foresay/foresay/internal/race"
)

// Variable is the environment variable that names the first seed, CountVariable the one that says
// how many each test plays.
const (
	Variable      = "FORESAY_SEED"
	CountVariable = "FORESAY_SEEDS"
)

// A run that names no seed plays one of so many, and with the race detector or -short, which make
// each of them slower or are to be quick, one of slowShare.
const (
	share     = 5
	slowShare = 50
	fewest    = 2 // are played of a share
)

// Named reports whether the run names its first seed, as make soak does. Such a run plays
// everything.
func Named() bool { return os.Getenv(Variable) != "" }

// First returns the seed that the run names, or else the usual one.
func First(t testing.TB, usual uint64) uint64 {
	t.Helper()
	return number(t, Variable, usual)
}

// Count returns how many of all its seeds a test plays: all in a run that names the first, and
// otherwise a share of them, for go test has a budget of time.
func Count(t testing.TB, all int) int {
	t.Helper()
	n := max(all/share, min(all, fewest))
	switch {
	case Named():
		n = all
	case race.Enabled || testing.Short():
		n = max(all/slowShare, min(all, 1))
	}
	if os.Getenv(CountVariable) == "" {
		return n
	}
	asked := number(t, CountVariable, 0)
	if asked < 1 || asked > math.MaxInt32 {
		t.Fatalf("%s: %d seeds (want 1 to %d)", CountVariable, asked, math.MaxInt32)
	}
	return int(asked)
}

// Every returns the step in which a test goes through a grid of cases: 1, or n with the race
// detector, for which it matters less which cases there are.
func Every(n int) int {
	if race.Enabled {
		return n
	}
	return 1
}

func number(t testing.TB, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil && n > math.MaxUint64-math.MaxInt32 { // there is no room for the seeds that follow
		err = strconv.ErrRange
	}
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

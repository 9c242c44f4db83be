package plant

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seedVariable is the environment variable that names the one seed that Seeds plays.
const seedVariable = "FORESAY_PLANT_SEED"

// movedTo comes before a seed that catches a bug in place of the one that the bug's Test names.
const movedTo = "caught by another seed, "

// search is how long Seeds plays with a bug planted.
const search = patience / 2

// Seeds runs the test t once for each seed that a bug names by its Test: TestSeeds/17 plays seed
// 17. With a bug planted it goes on with the seeds after that until one catches the bug, since any
// change of the code may have another seed catch it than the one that the table names.
func Seeds(t *testing.T, bugs []Bug, play func(seed uint64) error) {
	t.Helper()
	named := map[string]bool{}
	for _, b := range eachTest(bugs) {
		name, ok := strings.CutPrefix(b.Test, t.Name()+"/")
		if !ok || named[name] {
			continue
		}
		named[name] = true
		t.Run(name, func(t *testing.T) { playFrom(t, name, play) })
	}
	if len(named) == 0 {
		t.Errorf("no bug names a seed of %s", t.Name())
	}
}

// Planted reports whether the process has a bug planted.
func Planted() bool {
	planted := os.Getenv(Variable)
	return planted != "" && planted != None
}

func playFrom(t *testing.T, name string, play func(seed uint64) error) {
	t.Helper()
	first, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), name), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for seed := first; seed == first || Planted() && time.Since(began) < search; seed++ {
		switch err := play(seed); {
		case err != nil && seed == first:
			t.Fatalf("seed %d: %.700v", seed, err)
		case err != nil:
			t.Fatalf("%s%d: %.700v", movedTo, seed, err)
		}
	}
}

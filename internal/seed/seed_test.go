package seed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"
)

// TestCount: a run that names its first seed plays all, and any other one a share of them.
func TestCount(t *testing.T) {
	t.Setenv(seed.Variable, "")
	t.Setenv(seed.CountVariable, "")
	if n := seed.First(t, 7); n != 7 || seed.Named() {
		t.Errorf("nobody named a seed, and the first is %d", n)
	}
	if race.Enabled || testing.Short() {
		if n := seed.Count(t, 200); n != 4 {
			t.Errorf("%d of 200 are played, want 4", n)
		}
	} else {
		for _, c := range []struct{ all, want int }{{200, 40}, {12, 2}, {1, 1}, {0, 0}} {
			if n := seed.Count(t, c.all); n != c.want {
				t.Errorf("%d of %d are played, want %d", n, c.all, c.want)
			}
		}
	}
	t.Setenv(seed.Variable, "41")
	if first, n := seed.First(t, 7), seed.Count(t, 200); first != 41 || n != 200 || !seed.Named() {
		t.Errorf("seed 41 is named: %d are played from %d on, want 200 from 41 on", n, first)
	}
	t.Setenv(seed.CountVariable, "2")
	if n := seed.Count(t, 200); n != 2 {
		t.Errorf("two are asked for, and %d are played", n)
	}
	for _, wrong := range []string{"0", "-1", "many", "99999999999"} {
		t.Setenv(seed.CountVariable, wrong)
		f := &fatal{TB: t}
		func() {
			defer func() { _ = recover() }()
			seed.Count(f, 200)
		}()
		if !strings.HasPrefix(f.said, seed.CountVariable+": ") {
			t.Errorf("%s=%s: %q", seed.CountVariable, wrong, f.said)
		}
	}
}

// fatal is a test that keeps what it fails with.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f.said)
}

package plant

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/race"
)

// AllVariable asks for all planted bugs, those too that are tried only if asked for, and for each
// test once without a bug.
const AllVariable = "FORESAY_PLANTS"

// InsteadVariable names a test, as -run does, or some, as in (TestA|TestB)/seeds, that are tried in
// place of each bug's own: how many of the bugs do they catch? A bug that they do not catch is
// skipped, not failed.
const InsteadVariable = "FORESAY_PLANTS_TEST"

// A Bug is a change of a package's source, with the test of that package that catches it.
type Bug struct {
	Name string
	Dir  string // of the package, from the module's root
	// Old stands at one place of the package, New takes its place. MUTANT in New is whether
	// the bug is planted.
	Old, New string
	// Also are further places that the bug changes.
	Also []Edit
	// Test, perhaps a subtest, fails with the bug and passes without it, within seconds. See Seeds
	// for bugs that seeds of a random test catch.
	Test string
	// Tests do so as well.
	Tests []string
	// In is the package of these tests, if it is another one than that of the bug.
	In string
	// With names another bug of the table, if that is planted as well.
	With string
	// Hangs says that the test may hang with the bug instead. Such a bug is tried only if
	// AllVariable is set.
	Hangs bool
}

// An Edit replaces Old by New, as a Bug does.
type Edit struct{ Old, New string }

// tests returns the package of the bug's tests.
func (b Bug) tests() string { return cmp.Or(b.In, b.Dir) }

// Edits returns all places that the bug changes.
func (b Bug) Edits() []Edit { return append([]Edit{{b.Old, b.New}}, b.Also...) }

// patience is how long a test may take, on a busy machine too: many times what those here take.
// A test that InsteadVariable names may be a whole suite.
const (
	patience      = time.Minute
	patienceSuite = 10 * time.Minute
)

// Catch compiles the bugs' packages, each once, with all of its bugs, and fails if a bug's test
// does not catch it. With -short, and with the race detector, which would not be in what it
// compiles, it only looks whether there are such tests.
func Catch(t *testing.T, bugs []Bug) {
	t.Helper()
	tries := eachTest(bugs)
	for _, b := range tries {
		if name, _, _ := strings.Cut(b.Test, "/"); !HasTest(t, b.tests(), name) {
			t.Fatalf("%s, of which it is said that it catches that %s, is not in %s", b.Test, b.Name, b.tests())
		}
	}
	if testing.Short() || race.Enabled {
		t.Skip("it compiles the packages anew, without the race detector")
	}
	c := newCatcher(t, bugs)
	if test := os.Getenv(InsteadVariable); test != "" {
		c.tryInstead(t, bugs, test)
		return
	}
	for _, b := range tries {
		t.Run(b.Name, func(t *testing.T) {
			if b.Hangs && os.Getenv(AllVariable) == "" {
				t.Skipf("%s may hang with it; set %s to try, as make soak does", b.Test, AllVariable)
			}
			t.Parallel()
			seed, err := c.try(t.Context(), b)
			if err != nil {
				t.Error(err)
			}
			if seed != "" {
				t.Logf("it is sooner caught if %s names seed %s", b.Test, seed)
			}
		})
	}
}

// eachTest returns a copy of each bug for each of its tests, which is the copy's Test.
func eachTest(bugs []Bug) []Bug {
	var out []Bug
	for _, b := range bugs {
		for _, b.Test = range append([]string{b.Test}, b.Tests...) {
			out = append(out, b)
		}
	}
	return out
}

// tryInstead tries one test with each bug, and prints a table of which bugs it catches, with what
// it says first: of random tests that is the seed.
func (c *catcher) tryInstead(t *testing.T, bugs []Bug, test string) {
	c.patience, c.instead = patienceSuite, true
	table := make([]string, len(bugs))
	caught := make([]bool, len(bugs))
	t.Run("instead", func(t *testing.T) {
		for i, b := range bugs {
			b.Test, b.Tests = test, nil
			table[i] = "not tried\t\t" + b.Name
			t.Run(b.Name, func(t *testing.T) {
				if !slices.ContainsFunc(topLevel(test), func(name string) bool { return HasTest(t, b.tests(), name) }) {
					t.Skipf("%s has no test %s", b.tests(), test)
				}
				t.Parallel()
				began := time.Now()
				said, err := c.noticed(t.Context(), b)
				took := time.Since(began).Round(time.Second)
				if caught[i] = err == nil; !caught[i] {
					table[i] = fmt.Sprintf("survives\t%v\t%s", took, b.Name)
					t.Skipf("not caught in %v: %v", took, err)
				}
				table[i] = fmt.Sprintf("caught\t%v\t%s: %s", took, b.Name, said)
			})
		}
	})
	n := 0
	for _, is := range caught {
		if is {
			n++
		}
	}
	t.Logf("%s catches %d of %d:\n%s", test, n, len(bugs), strings.Join(table, "\n"))
}

// topLevel returns the names of the tests that a pattern begins with: TestA/x has one,
// (TestA|TestB)/x two.
func topLevel(pattern string) []string {
	name, _, _ := strings.Cut(pattern, "/")
	return strings.Split(strings.Trim(name, "()"), "|")
}

// noticed returns what a bug's test says first of the bug, or an error if it does not fail.
func (c *catcher) noticed(ctx context.Context, b Bug) (said string, err error) {
	out, err := c.attempt(ctx, b)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if _, at, found := strings.Cut(line, ".go:"); found {
			_, text, _ := strings.Cut(at, ": ") // behind the line's number
			return fmt.Sprintf("%.100s", strings.TrimSpace(text)), nil
		}
	}
	return "", nil
}

// catcher runs compiled tests.
type catcher struct {
	root     string
	patience time.Duration
	instead  bool                    // a test that InsteadVariable names is tried
	binaries map[string]string       // by directory
	sound    map[string]func() error // by test that is looked at: how it ends without a bug
}

func newCatcher(t *testing.T, bugs []Bug) *catcher {
	t.Helper()
	o := NewOverlay(t)
	for _, b := range bugs {
		o.PlantBug(b)
	}
	c := &catcher{root: o.root, patience: patience, binaries: map[string]string{}, sound: map[string]func() error{}}
	for _, b := range eachTest(bugs) {
		// That a test passes without a bug, go test itself shows in the same run. So one of each
		// package's is enough to show that tests pass as they are run here.
		check := os.Getenv(AllVariable) != ""
		if c.binaries[b.tests()] == "" {
			c.binaries[b.tests()], check = o.Compile(b.tests()), true
		}
		if key := b.tests() + " " + b.Test; c.sound[key] == nil && check {
			c.sound[key] = sync.OnceValue(func() error {
				out, err := c.run(t.Context(), b, None, "")
				if err != nil {
					return fmt.Errorf("%s fails without a bug: %w\n%.2000s", b.Test, err, out)
				}
				return nil
			})
		}
	}
	return c
}

// try returns an error if a bug is not caught, and the seed that caught it if the table names
// another.
func (c *catcher) try(ctx context.Context, b Bug) (seed string, err error) {
	out, err := c.attempt(ctx, b)
	if err != nil {
		return "", err
	}
	_, after, moved := strings.Cut(out, movedTo)
	if !moved {
		return "", nil
	}
	seed, _, _ = strings.Cut(after, ":")
	if out, err := c.run(ctx, b, None, seed); err != nil {
		return seed, fmt.Errorf("%s fails with seed %s without a bug: %w\n%.2000s", b.Test, seed, err, out)
	}
	return seed, nil
}

// attempt runs a bug's test with the bug, and returns what it prints, or an error if it does not
// catch it.
func (c *catcher) attempt(ctx context.Context, b Bug) (out string, err error) {
	if sound := c.sound[b.tests()+" "+b.Test]; sound != nil {
		if err := sound(); err != nil {
			return "", err
		}
	}
	out, err = c.run(ctx, b, strings.TrimSuffix(b.Name+"\n"+b.With, "\n"), "")
	failed := err != nil && err != context.DeadlineExceeded &&
		slices.ContainsFunc(topLevel(b.Test), func(name string) bool { return strings.Contains(out, "--- FAIL: "+name) })
	if hangs := err == context.DeadlineExceeded; !failed && !(b.Hangs && hangs) {
		return "", fmt.Errorf("%s does not catch it: %v\n%.2000s", b.Test, err, out)
	}
	return out, nil
}

// run runs a bug's test with a bug planted, perhaps another one; with the one seed only, if any.
func (c *catcher) run(ctx context.Context, b Bug, planted, seed string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binaries[b.tests()], "-test.run", "^"+strings.ReplaceAll(b.Test, "/", "$/^")+"$")
	cmd.Dir = filepath.Join(c.root, b.tests())
	cmd.Env = append(Environ(), Variable+"="+planted, seedVariable+"="+seed)
	if !c.instead { // the table names tests by their usual seeds
		cmd.Env = append(cmd.Env, "FORESAY_SEED=", "FORESAY_SEEDS=")
	}
	out, err := cmd.CombinedOutput()
	return string(out), cmp.Or(ctx.Err(), err)
}

// Environ is the environment of tests in a child, where garbage is collected as heap.RunTests has
// it: not all packages that are planted have that as their TestMain.
func Environ() []string {
	return append(os.Environ(), "GOGC="+cmp.Or(os.Getenv("GOGC"), strconv.Itoa(heap.TestsPercent)))
}

// HasTest reports whether a package has a test.
func HasTest(t testing.TB, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(src), "\nfunc "+test+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

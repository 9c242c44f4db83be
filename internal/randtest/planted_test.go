package randtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	planting "github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"
)

// The environment of the test's child.
const (
	plantVariable = planting.Variable      // the bug
	focusVariable = "FORESAY_PLANT_SKETCH" // the sketch to try beside random programs
	onlyVariable  = "FORESAY_PLANT_ONLY"   // the one scenario to try
	firstVariable = "FORESAY_PLANT_FIRST"  // those to try before all others
	countVariable = "FORESAY_PLANT_COUNT"  // how many to try
	hangVariable  = "FORESAY_PLANT_HANG"   // how long one may take
)

// allVariable asks for all planted bugs, those too that show only after long.
const allVariable = planting.AllVariable

// noPlant names no bug.
const noPlant = planting.None

// What the child prints; what it tries it prints before, as it may die of that.
const (
	tries  = "tries scenario "
	wrongs = "caught by scenario "
)

// TestRandomPlants: bugs planted into the engine are caught by random programs.
func TestRandomPlants(t *testing.T) {
	if os.Getenv(plantVariable) != "" {
		hunt(t)
		return
	}
	if testing.Short() || race.Enabled {
		t.Skip("it compiles the engine anew")
	}
	e := &experiment{binary: compilePlants(t), timeout: 5 * time.Minute}
	all := plants()
	for _, b := range treePlants() {
		if unseen()[b.Name] == "" {
			all = append(all, plant{name: b.Name, sketch: focus()[b.Name], first: firstOfTree()[b.Name],
				slow: slices.Contains(slow(), b.Name)})
		}
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			if p.slow && os.Getenv(allVariable) == "" {
				t.Skipf("it takes long; set %s to try, as make soak does", allVariable)
			}
			t.Parallel()
			told, ok := e.try(t, p)
			if !ok {
				t.Errorf("not caught: %s", told)
			}
			t.Log(told)
		})
	}
	t.Run("what changes nothing is not caught", func(t *testing.T) {
		t.Parallel()
		controls(t, *e)
	})
}

// controls tries a plant that changes nothing, in all ways in which it could
// seem to be caught.
func controls(t *testing.T, e experiment) {
	nothing := plant{name: "a plant that changes nothing"}
	for _, c := range []struct {
		name, want string
		count      int
		timeout    time.Duration
		hang       time.Duration
	}{
		{"it passes", "none of the scenarios shows it", 60, time.Minute, 0},
		{"its time is over", "panic: test timed out", 8000, 300 * time.Millisecond, 0},
		{"it takes long with the bug and without", "without the bug, too", 60, time.Minute, time.Nanosecond},
	} {
		e.count, e.timeout, e.hang = c.count, c.timeout, c.hang
		if told, ok := e.try(t, nothing); ok || !strings.Contains(told, c.want) {
			t.Errorf("%s: caught %v, %q; want it not caught, and %q", c.name, ok, told, c.want)
		}
	}
}

// experiment tries planted bugs.
type experiment struct {
	binary  string
	timeout time.Duration // of the child
	count   int           // of scenarios; 0 for what is usual
	hang    time.Duration // see hangVariable; 0 for what is usual
}

// try reports whether a planted bug is caught: a scenario goes wrong, dies or
// hangs with it, and ends well and in time without it.
func (e *experiment) try(t *testing.T, p plant) (told string, caught bool) {
	t.Helper()
	out, failed := e.run(t, p.name, p, 0)
	if !failed {
		return "none of the scenarios shows it", false
	}
	how, n := symptom(out)
	if how == "" {
		return fmt.Sprintf("it is no symptom that the test ended so:\n%.3000s", out), false
	}
	if sound, failed := e.run(t, noPlant, p, n); failed {
		return fmt.Sprintf("scenario %d fails without the bug, too: %s\n%.3000s", n, how, sound), false
	}
	return fmt.Sprintf("scenario %d: %s", n, how), true
}

// run runs the child, on one scenario only if n is positive.
func (e *experiment) run(t *testing.T, bug string, p plant, n int) (out string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), e.binary, "-test.run", "^TestRandomPlants$", "-test.v", "-test.timeout",
		e.timeout.String())
	first := strings.Trim(fmt.Sprint(p.first), "[]")
	if os.Getenv(seed.Variable) != "" {
		first = "" // other seeds, other scenarios
	}
	cmd.Env = append(planting.Environ(), plantVariable+"="+bug, focusVariable+"="+p.sketch,
		onlyVariable+"="+strconv.Itoa(n), firstVariable+"="+first,
		countVariable+"="+strconv.Itoa(cmp.Or(e.count, 8000)), hangVariable+"="+cmp.Or(e.hang, 10*time.Second).String())
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), err != nil
}

// symptom returns how a child failed, and by which scenario; nothing if it
// failed for another reason, as when its own time is over.
func symptom(out string) (how string, n int) {
	for l := range strings.Lines(out) {
		l = strings.TrimSpace(l)
		if rest, ok := strings.CutPrefix(l, tries); ok {
			n, _ = strconv.Atoi(rest)
			continue
		}
		if strings.Contains(l, "panic: test timed out") {
			return "", n
		}
		for _, sign := range []string{wrongs, "panic:", "fatal error:"} {
			if strings.Contains(l, sign) {
				return fmt.Sprintf("%.200s", l), n
			}
		}
	}
	return "", n
}

// TestSymptoms: only what a scenario did counts.
func TestSymptoms(t *testing.T) {
	for _, c := range []struct {
		out, how string
		n        int
	}{
		{"tries scenario 1\ntries scenario 2\n    planted_test.go:9: caught by scenario 2: x\n",
			"planted_test.go:9: caught by scenario 2: x", 2},
		{"tries scenario 3\npanic: a nil map\ngoroutine 1\n", "panic: a nil map", 3},
		{"tries scenario 3\nfatal error: all goroutines are asleep\n", "fatal error: all goroutines are asleep", 3},
		{"tries scenario 4\npanic: it hangs\n", "panic: it hangs", 4},
		{"tries scenario 5\npanic: test timed out after 4s\n", "", 5},
		{"tries scenario 6\nsignal: killed\n", "", 6},
	} {
		if how, n := symptom(c.out); how != c.how || n != c.n {
			t.Errorf("%q: got %q of %d, want %q of %d", c.out, how, n, c.how, c.n)
		}
	}
}

// firstTries is how often a scenario is tried that comes first: whether it shows the
// bug may depend on the scheduler.
const firstTries = 20

// hunt is the child: it fails when a scenario shows the planted bug.
func hunt(t *testing.T) {
	all := sketches()
	if focus := os.Getenv(focusVariable); focus != "" {
		all = slices.DeleteFunc(all, func(sk sketch) bool { return sk.name != focus })
	}
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	limit, err := time.ParseDuration(os.Getenv(hangVariable))
	if err != nil {
		t.Fatalf("%s: %v", hangVariable, err)
	}
	attempt := func(n int, seed uint64) {
		sk := all[(n-1)/4%len(all)]
		var sc *Scenario
		switch n % 4 {
		case 1:
			sc = sk.scenario(seed, false)
		case 2:
			sc = sk.scenario(seed, !sk.calm)
		case 3:
			sc = NewScenario(seed, false)
		case 0:
			sc = NewScenario(seed, true)
		}
		fmt.Printf("\n%s%d\n", tries, n)
		stuck := time.AfterFunc(limit, func() { panic("it hangs") })
		res := sc.Check(t, Mutation{}, false)
		stuck.Stop()
		if len(res.Wrong) > 0 {
			t.Fatalf("%s%d (seed %d, faults %v): %.150q", wrongs, n, seed, sc.Faults, res.Wrong[0])
		}
	}
	only, n := number(onlyVariable), 0
	seeds := slices.Collect(Seeds(t, number(countVariable)))
	for first := range strings.FieldsSeq(os.Getenv(firstVariable)) {
		n, err := strconv.Atoi(first)
		if err != nil {
			t.Fatalf("%s: %v", firstVariable, err)
		}
		for i := 0; i < firstTries && only == 0; i++ {
			attempt(n, seeds[n-1])
		}
	}
	for _, seed := range seeds {
		if n++; only == 0 || n == only {
			attempt(n, seed)
		}
	}
}

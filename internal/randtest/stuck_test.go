package randtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	planting "github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/plant/treebugs"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/report"
)

// TestStuckTasksAreFoundOut: with a rule taken away that keeps tasks from being
// stuck, the engine's test of such programs fails, and the watchdog has them go on
// all the same; without the watchdog they do not.
func TestStuckTasksAreFoundOut(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("it compiles the engine anew")
	}
	const rule, watchdog = "the rule", "the watchdog"
	o := planting.NewOverlay(t)
	names := func(what string) string {
		return fmt.Sprintf("import (\n\"os\"\n\"strings\"\n)\nfunc without() bool { return "+
			"strings.Contains(os.Getenv(%q), %q) }\n", planting.Variable, what)
	}
	for _, b := range treebugs.Bugs() {
		for _, e := range b.Edits() {
			if b.Name == "keepPath" {
				o.Replace(b.Dir, e.Old, strings.ReplaceAll(e.New, "MUTANT", "without()"))
			}
		}
	}
	o.Add("internal/spectree/without.go", "package spectree\n"+names(rule))
	o.Replace("internal/engine", "\tif again {\n", "\tif again && !without() {\n")
	o.Add("internal/engine/without.go", "package engine\n"+names(watchdog))
	binary := o.Compile("internal/engine")
	for _, tt := range []struct {
		without, test string
		fails         bool
		says          string
	}{
		{"", "TestNobodyWaitsForWhatWaits", false, ""},
		{"", "TestStuckTasksGoOn", false, "stuck 0 times"},
		{rule, "TestNobodyWaitsForWhatWaits", true, "stuck 1 times"},
		{rule, "TestStuckTasksGoOn", false, "stuck 1 times"},
		{rule + watchdog, "TestStuckTasksGoOn", true, "took 1m40"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", "^"+tt.test+"$")
		cmd.Dir = filepath.Join(planting.Root(t), "internal/engine")
		cmd.Env = append(os.Environ(), planting.Variable+"="+tt.without)
		out, err := cmd.CombinedOutput()
		if (err != nil) != tt.fails || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s without %q: %v, want a failure: %v, and %q\n%.3000s", tt.test, tt.without, err, tt.fails, tt.says, out)
		}
	}
}

// TestLateIsNoticed checks that a program which takes long is, whatever its seed decides: one that
// shares a context, or ends one, or orders its calls, too.
func TestLateIsNoticed(t *testing.T) {
	for name, tt := range map[string]struct {
		replays int
		took    time.Duration
		late    bool
		stopped bool
	}{
		"in time":                   {0, 2500 * time.Millisecond, false, false},
		"late":                      {0, 2501 * time.Millisecond, true, false},
		"stopped for a race":        {0, 7000 * time.Millisecond, false, true},
		"in time, with two replays": {2, 4500 * time.Millisecond, false, false},
		"late in spite of a replay": {1, 4500 * time.Millisecond, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle()
			o.computes(true, time.Second)
			v := &verdict{sc: &Scenario{}, want: &outcome{took: time.Second}, got: &outcome{took: tt.took}, ok: !tt.stopped}
			v.got.reports = []*report.Report{{Runs: make([]report.Run, 1+tt.replays)}}
			if v.late(o); (len(v.list) > 0) != tt.late {
				t.Errorf("what is wrong: %q", v.list)
			}
		})
	}
}

// TestEachWrongGuessCostsARun checks what a program may take whose calls are guessed wrong: its own
// code once more for each, also where a run that goes on with another prediction was alive, so that
// none began anew.
func TestEachWrongGuessCostsARun(t *testing.T) {
	runs := []report.Run{{RefutedBy: 1}, {Cause: 2, RefutedBy: 2}, {Cause: 2, ReplayOf: 2}}
	for took, late := range map[time.Duration]bool{3002 * time.Millisecond: false, 3003 * time.Millisecond: true} {
		o := newOracle()
		o.computes(true, time.Second)
		sc := new(Scenario)
		sc.knobs.Timing.On = true
		v := &verdict{sc: sc, want: &outcome{took: time.Second},
			got: &outcome{took: took, reports: []*report.Report{{Runs: runs}}}}
		if v.late(o); (len(v.list) > 0) != late {
			t.Errorf("after %v: what is wrong: %q", took, v.list)
		}
	}
}

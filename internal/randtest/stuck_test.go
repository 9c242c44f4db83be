package randtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	planting "github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/plant/treebugs"
	"github.com/foresay/foresay/internal/race"
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

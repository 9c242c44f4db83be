package benchcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/spf13/cobra"
)

// Bubbles of testing/synctest need a *testing.T, which testing.Main gives inside any
// program; it prints and ends the process. So an experiment in virtual time runs in a
// child process, which is this program with a hidden subcommand, and leaves its outcome in a file.

const bubbleName = "in-bubble"

// A bubbleOutcome is what the child process tells.
type bubbleOutcome struct {
	Error  string        `json:"error,omitempty"`
	Result *bench.Result `json:"result,omitempty"`
}

// runInChild runs the experiment in virtual time.
func (p *program) runInChild(ctx context.Context, e bench.Experiment, o bench.Options) (*bench.Result, error) {
	outcome, err := p.childOutcome(ctx, e, o)
	if err != nil {
		return nil, fmt.Errorf("bench %s: run in virtual time in a process of its own: %w", e.Name, err)
	}
	if outcome.Error != "" {
		return nil, errors.New(outcome.Error)
	}
	return outcome.Result, nil
}

func (p *program) childOutcome(ctx context.Context, e bench.Experiment, o bench.Options) (*bubbleOutcome, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "foresay-bench-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	child := exec.CommandContext(ctx, self, "bench", bubbleName, e.Name, file.Name(),
		"--quick="+strconv.FormatBool(o.Quick), "--seed="+strconv.FormatUint(o.Seed, 10), "--seeds="+strconv.Itoa(o.Seeds))
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, p.Err
	// The child ends when this pipe does: with this process, however that ends.
	leash, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer leash.Close()
	if err := child.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	var outcome bubbleOutcome
	if err := json.NewDecoder(file).Decode(&outcome); err != nil {
		return nil, fmt.Errorf("read its outcome: %w", err)
	}
	return &outcome, nil
}

func (p *program) bubbleCommand() *cobra.Command {
	var o bench.Options
	c := &cobra.Command{
		Use:    bubbleName + " NAME FILE",
		Short:  "Run an experiment in virtual time and leave its outcome in a file",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			e, ok := experiments.Lookup(args[0])
			if !ok {
				return command.Usagef("bench: no experiment %q", args[0])
			}
			o.Mode = bench.Virtual
			o.Quick, _ = c.Flags().GetBool("quick") // both are bench's own flags
			o.Seed, _ = c.Flags().GetUint64("seed")
			p.EndWithParent()
			bar := command.NewProgress(p.Err)
			o.Progress = bar.Report
			os.Args = os.Args[:1] // testing.Main reads flags of its own
			testing.Main(func(string, string) (bool, error) { return true, nil },
				[]testing.InternalTest{{Name: e.Name, F: func(t *testing.T) { inBubbles(t, e, o, bar, args[1]) }}}, nil, nil)
			return nil // never: testing.Main ends the process
		},
	}
	c.Flags().IntVar(&o.Seeds, "seeds", 1, "as of the experiment")
	return c
}

func inBubbles(t *testing.T, e bench.Experiment, o bench.Options, bar *command.Progress, path string) {
	o.Bubble = func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
	var outcome bubbleOutcome
	result, err := e.Run(t.Context(), o)
	bar.Clear()
	if err != nil {
		outcome.Error = err.Error()
	}
	outcome.Result = result
	data, err := json.Marshal(outcome)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatalf("write the outcome: %v", err)
	}
}

package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/nearest"
)

// benchFlags are the flags that all experiments share.
type benchFlags struct {
	json          bool
	out           string
	real, virtual bool
	quick         bool
	seed          uint64
	seeds         int
	protocol      string
	away          time.Duration
	alone         bool
	full          bool
}

func (p *program) command() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "Run an experiment, with the systems that it compares side by side",
		Long: `Run an experiment: the same requests through plain gRPC and through Foresay, or the same calls to
services replicated by different protocols.

In virtual mode time passes only where calls wait: latencies are exact and the same everywhere. In
real mode the systems take turns on the wall clock, over this machine's loopback interface.`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownExperiment,
	}
	flags := c.PersistentFlags()
	flags.BoolVar(&f.json, "json", false, "write JSON instead of a table")
	flags.StringVar(&f.out, "out", "", "also write JSON, CSV and SVG figures to this `directory`")
	flags.BoolVar(&f.real, "real", false, "run on the wall clock")
	flags.BoolVar(&f.virtual, "virtual", false, "run in virtual time")
	flags.BoolVar(&f.quick, "quick", false, "end within seconds: fewer points, fewer requests")
	flags.Uint64Var(&f.seed, "seed", 1, "fixes which predictions are right and the order of turns")
	for _, e := range experiments.All() {
		one := &cobra.Command{
			Use:   e.Name,
			Short: e.Summary,
			Args:  cobra.NoArgs,
			RunE:  func(c *cobra.Command, _ []string) error { return p.runBench(c.Context(), e, f) },
		}
		if e.PerProtocol {
			one.Flags().StringVar(&f.protocol, "protocol", "", "measure this `protocol` only, instead of one after the other")
		}
		if len(e.Intervals) > 0 {
			one.Flags().IntVar(&f.seeds, "seeds", 1, "run with this many seeds, from --seed on, and write means and intervals")
		}
		if e.Away {
			one.Flags().DurationVar(&f.away, "away", 0,
				"how long a machine is away, as a `duration` such as 10m (0: the experiment's own)")
			one.Flags().BoolVar(&f.alone, "alone", false, "leave out the run beside it in which nothing is killed")
		}
		if e.Full {
			one.Flags().BoolVar(&f.full, "full", false,
				"measure one point only, with as many servers as the paper has, and with as few as other points have")
		}
		c.AddCommand(one)
	}
	c.AddCommand(p.benchListCommand(), p.bubbleCommand())
	return c
}

func (p *program) benchListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Name the experiments",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			for _, e := range experiments.All() {
				fmt.Fprintf(w, "%s\t%s\n", e.Name, e.Summary)
			}
			return w.Flush()
		},
	}
}

func unknownExperiment(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usagef("bench: name an experiment; 'foresay bench list' shows them")
	}
	var known []string
	for _, e := range experiments.All() {
		known = append(known, e.Name)
	}
	return command.Usagef("bench: no experiment %q%s; 'foresay bench list' shows them", args[0],
		nearest.Hint(args[0], known))
}

// runBench runs the experiment and writes what it found.
func (p *program) runBench(ctx context.Context, e bench.Experiment, f benchFlags) error {
	mode, err := f.mode(e)
	if err != nil {
		return err
	}
	if err := e.CheckProtocol(f.protocol); err != nil {
		return command.Usagef("%w", err)
	}
	if err := e.CheckSeeds(f.seeds); err != nil {
		return command.Usagef("%w", err)
	}
	var dir outDir
	if f.out != "" {
		if dir, err = openOutDir(f.out); err != nil {
			return err
		}
	}
	o := bench.Options{Mode: mode, Quick: f.quick, Seed: f.seed, Seeds: f.seeds, Protocol: f.protocol, Away: f.away,
		Alone: f.alone, Full: f.full}
	var result *bench.Result
	if e.NeedsBubble(mode) {
		result, err = p.runInChild(ctx, e, o)
	} else {
		bar := command.NewProgress(p.Err)
		o.Progress = bar.Report
		if o.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("bench %s: find this program: %w", e.Name, err)
		}
		result, err = e.Run(ctx, o)
		bar.Clear()
	}
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("bench %s: interrupted", e.Name)
		}
		return err
	}
	if f.full {
		e.Figures = nil // of one point there is nothing to draw
	}
	if f.out != "" {
		files, err := dir.write(e, result)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.Err, "wrote", strings.Join(files, ", "))
	}
	if f.json {
		return result.WriteJSON(p.Out)
	}
	return result.WriteTable(p.Out)
}

func (f benchFlags) mode(e bench.Experiment) (bench.Mode, error) {
	var want bench.Mode
	switch {
	case f.real && f.virtual:
		return "", command.Usagef("bench %s: --real and --virtual exclude each other", e.Name)
	case f.real:
		want = bench.Real
	case f.virtual:
		want = bench.Virtual
	}
	mode, err := e.CheckMode(want)
	if errors.Is(err, bench.ErrMode) {
		return "", command.Usagef("%w", err)
	}
	return mode, err
}

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command bench.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }

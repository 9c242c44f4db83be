package simcmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrtest"
)

const (
	maxSimReplicas = 9 // for which package smrtest has sites
	maxSeeds       = 1_000_000
)

type simFlags struct {
	protocol string
	seed     uint64
	seeds    int
	faults   string
	replicas int
	clients  int
	duration time.Duration
	trace    string
	explain  bool
	json     bool
	// For protocols whose replicas may lie.
	traitors   string
	badClients int
}

func (p *program) runCommand() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Play a replicated service and its clients under faults, and judge what came of it",
		Long: `Play a group of replicas and its clients in the simulator, under faults drawn from the seed, and
judge the run: agreement, validity, linearizability, exactly-once, durability, liveness after the
faults have ended. The same flags give the same run, with the same hash. The exit status is 1 if a
promise was broken.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runSim(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.protocol, "protocol", "raft", "the protocol; 'foresay sim list' names them")
	flags.Uint64Var(&f.seed, "seed", 1, "decides everything that chance decides")
	flags.IntVar(&f.seeds, "seeds", 1, "play this many seeds, from --seed on")
	flags.StringVar(&f.faults, "faults", command.SwarmName,
		"which faults strike, as 'foresay sim list' names them, with commas between")
	flags.IntVar(&f.replicas, "replicas", 0, "how many replicas (default 3, with --faults=swarm 5 or 7 for some seeds)")
	flags.IntVar(&f.clients, "clients", 0, "how many clients (default 4)")
	flags.DurationVar(&f.duration, "for", 0, "how long faults strike, in virtual time (default 6s)")
	flags.StringVar(&f.trace, "trace", "", "write all that happens to this `file`, - for standard output")
	flags.BoolVar(&f.explain, "explain", false,
		"show the last messages, and how each node stands, at the end or the failure")
	flags.StringVar(&f.traitors, "traitors", "",
		"with "+strings.Join(catalog.ByzantineNames(), ", ")+
			": replicas that do as they like, and how, as `ID=STRATEGY` with commas between; IDs from 70000 on are clients")
	flags.IntVar(&f.badClients, "bad-clients", 0, "with the same: how many clients do as they like")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of text")
	return c
}

// scenario returns what is played with a seed.
func (f *simFlags) scenario(proto smr.Protocol, seed uint64) (smrtest.Scenario, error) {
	var sc smrtest.Scenario
	if f.faults == command.SwarmName {
		sc = smrtest.Swarm(proto, seed)
	} else {
		faults, err := sim.ParseFaults(f.faults)
		if err != nil {
			return sc, command.Usagef("sim run: --faults: %w", err)
		}
		sc = smrtest.Scenario{Protocol: proto, Seed: seed, Faults: faults}
	}
	if f.replicas != 0 {
		sc.Replicas = f.replicas
	}
	sc.Clients, sc.For = f.clients, f.duration
	sc.Replay = f.replayCommand(sc)
	return sc, nil
}

// replayCommand returns the command that plays the same again. What a seed of the swarm chooses
// beside the faults has no flag.
func (f *simFlags) replayCommand(sc smrtest.Scenario) string {
	s := fmt.Sprintf("go run ./cmd/foresay sim run --protocol %s --seed %d", sc.Protocol.Name, sc.Seed)
	if f.faults != command.SwarmName {
		s += fmt.Sprintf(" --faults %v", sc.Faults)
	}
	if f.replicas != 0 {
		s += fmt.Sprintf(" --replicas %d", sc.Replicas)
	}
	if sc.Clients != 0 {
		s += fmt.Sprintf(" --clients %d", sc.Clients)
	}
	if sc.For != 0 {
		s += fmt.Sprintf(" --for %v", sc.For)
	}
	return s
}

func (f *simFlags) validate() error {
	switch {
	case f.seeds < 1 || f.seeds > maxSeeds:
		return command.Usagef("sim run: --seeds is %d; want 1 to %d", f.seeds, maxSeeds)
	case f.seed > math.MaxUint64-uint64(f.seeds):
		return command.Usagef("sim run: --seed %d and --seeds %d go beyond the last seed", f.seed, f.seeds)
	case f.replicas < 0 || f.replicas > maxSimReplicas:
		return command.Usagef("sim run: --replicas is %d; want 1 to %d", f.replicas, maxSimReplicas)
	case f.clients < 0:
		return command.Usagef("sim run: --clients is %d; want 1 or more", f.clients)
	case f.duration < 0:
		return command.Usagef("sim run: --for is %v; want more than 0", f.duration)
	case f.trace != "" && f.seeds > 1:
		return command.Usagef("sim run: --trace is for a single seed")
	case f.trace == "-" && f.json:
		return command.Usagef("sim run: --trace - and --json both write to standard output")
	}
	return nil
}

func (p *program) runSim(ctx context.Context, f simFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	if slices.Contains(catalog.ByzantineNames(), f.protocol) {
		return p.runByzantine(ctx, f)
	}
	if f.traitors != "" || f.badClients != 0 {
		return command.Usagef("sim run: --traitors and --bad-clients are for %s; %s relies on its replicas",
			strings.Join(catalog.ByzantineNames(), ", "), f.protocol)
	}
	proto, err := catalog.Protocol(f.protocol)
	if err != nil {
		return command.Usagef("sim run: --protocol: %w", err)
	}
	return p.playSeeds(ctx, f, proto)
}

// playSeeds plays all seeds, as many at once as there are processors, and reports in the order of
// the seeds.
func (p *program) playSeeds(ctx context.Context, f simFlags, proto smr.Protocol) error {
	if _, err := f.scenario(proto, f.seed); err != nil {
		return err
	}
	trace, closeTrace, err := p.openTrace(f.trace)
	if err != nil {
		return err
	}
	verdicts := make([]chan verdict, f.seeds)
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0) + 1) // one reports
	group.Go(func() error { return p.reportSeeds(ctx, f, verdicts) })
	for i := range verdicts {
		sc, err := f.scenario(proto, f.seed+uint64(i))
		if err != nil || ctx.Err() != nil {
			break // the faults were right for the first seed; who reports says that it was interrupted
		}
		sc.Trace = trace
		group.Go(func() error {
			verdicts[i] <- playScenario(sc, f.explain)
			return nil
		})
	}
	err = group.Wait()
	if e := closeTrace(); e != nil && err == nil {
		err = fmt.Errorf("sim run: --trace: %w", e)
	}
	return err
}

func (p *program) openTrace(name string) (io.Writer, func() error, error) {
	switch name {
	case "":
		return nil, func() error { return nil }, nil
	case "-":
		w := bufio.NewWriter(p.Out)
		return w, w.Flush, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, nil, fmt.Errorf("sim run: --trace: %w", err)
	}
	w := bufio.NewWriter(file)
	return w, func() error {
		if err := w.Flush(); err != nil {
			return err
		}
		return file.Close()
	}, nil
}

// reportSeeds writes what came of each seed.
func (p *program) reportSeeds(ctx context.Context, f simFlags, verdicts []chan verdict) error {
	bar := command.NewProgress(p.Err)
	broken, all := 0, make([]verdict, 0, len(verdicts))
	for i, next := range verdicts {
		if len(verdicts) > 1 {
			bar.Report(bench.Progress{Experiment: "sim", Doing: fmt.Sprintf("seed %d", f.seed+uint64(i)), Done: i,
				Total: len(verdicts)})
		}
		select {
		case <-ctx.Done():
			bar.Clear()
			return fmt.Errorf("sim run: interrupted after %d of %d seeds", i, len(verdicts))
		case v := <-next:
			if v.Error != "" {
				broken++
			}
			all = append(all, v)
			if !f.json {
				bar.Clear()
				if err := v.write(p.Out); err != nil {
					return err
				}
			}
		}
	}
	bar.Clear()
	if f.json {
		if err := p.WriteJSON(all); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("sim run: %d of %d seeds broke a promise", broken, len(verdicts))
	}
	return nil
}

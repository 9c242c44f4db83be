// Package plancmd is the command foresay store plan.
package plancmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

const verb = "store plan"

// asked is the command line of 'store plan'.
type asked struct {
	wan        string
	clients    []string
	partitions int
	replicas   int
	leaders    []string
	txns       string
	declared   bool
	stale      bool
	protocols  []string
	search     bool
	by         string
	seed       uint64
	planning.Wanted
}

// A program is one run of the command line, with this command.
type program struct{ *command.Program }

// Command returns the command plan.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }

func (p *program) command() *cobra.Command {
	var f asked
	c := &cobra.Command{
		Use:   "plan",
		Short: "Tell what each protocol gives to transactions in a network, and where partitions are best",
		Long: `Tell, from a matrix of round-trip times, how long transactions of each protocol take at each client,
by their class, beside what is physically possible; what each protocol promises, and what it does
while a site is lost; and where partitions and their leaders are best placed.

  foresay store plan --wan carousel                                   the thesis' setting
  foresay store plan --wan net.json --partitions 6 --replicas 3 --search
  foresay store plan --wan net.json --clients a=3,d --txns reads=3,writes=2,locality=80 --per-client

Classes of transactions: ro only reads; lrt writes, and each of its partitions has a copy at the
client's site; rpt writes, and has a partition without one. The figures are of a model in which
nothing queues or conflicts. --check has the protocols run in the simulator and compares; it fails
where a mean is more than 2 % off the model's.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.run(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+
		", or a `file` of sites and round-trip times")
	flags.StringSliceVar(&f.clients, "clients", []string{"all"},
		"all, or the clients' `sites`, with weights if they differ: a=3,b")
	flags.IntVar(&f.partitions, "partitions", 0, "how many parts the keys are dealt to\n"+
		"(default: as many as there are sites)")
	flags.IntVar(&f.replicas, "replicas", 3, "how many sites have each partition: its leader's and those that\n"+
		"follow in the order of the network's sites (all, if there are fewer)")
	flags.StringSliceVar(&f.leaders, "leaders", nil, "the `sites` that lead the partitions, dealt to them in turn\n"+
		"(default: all of them)")
	flags.StringVar(&f.txns, "txns", "retwis", "what transactions are like: retwis, ycsbt (four keys read and written),\n"+
		"or reads=N,writes=N,locality=PERCENT: writes are of keys that were read, as far as there are any;\n"+
		"locality is how many of a hundred keep to partitions that are led at their client's site")
	flags.BoolVar(&f.declared, "declared", false, "transactions know their keys when they begin, and read side by side:\n"+
		"replicatedcommit does so with code that reads one after the other, too, if first\n"+
		"answers are right guesses (default: one after the other)")
	flags.BoolVar(&f.stale, "stale", false, "transactions that only read may see what is a little old:\n"+
		"those of carousel read the nearest copies, of what nobody has only just written")
	flags.StringSliceVar(&f.protocols, "protocol", nil, "only these protocols, with commas between")
	flags.BoolVar(&f.search, "search", false, "search the best placement for each protocol")
	flags.StringVar(&f.by, "by", "p50", "what the best is the best for: mean, p50, p95 or worst, of all transactions\n"+
		"or of a class: p95-rpt")
	f.Flags(flags)
	flags.Uint64Var(&f.seed, "seed", 1, "of the transactions")
	command.SetChoices(flags.Lookup("protocol"), planning.Names(plan.Systems()))
	command.SetChoices(flags.Lookup("by"), measureNames())
	return c
}

// measureNames are what --by can be.
func measureNames() (names []string) {
	for _, m := range plan.Measures() {
		for _, class := range plan.Classes() {
			if class == plan.All {
				names = append(names, string(m))
			} else {
				names = append(names, string(m)+"-"+string(class))
			}
		}
	}
	return names
}

// question is what the flags ask.
type question struct {
	network string
	txns    string
	setting plan.Setting
	systems []plan.System
	search  bool
	goal    plan.Goal // without a system
}

func (p *program) run(ctx context.Context, f asked) error {
	q, err := f.question()
	if err != nil {
		return err
	}
	r, err := p.plan(ctx, q)
	if err != nil {
		return err
	}
	return f.Show(ctx, p.Program, verb, r)
}

// question understands the flags.
func (f *asked) question() (question, error) {
	q := question{network: f.wan, txns: f.txns, search: f.search}
	d, err := planning.Network(verb, f.wan)
	if err != nil {
		return q, err
	}
	q.setting.WAN = d.Matrix
	clients, err := planning.Clients(verb, f.clients, d.Matrix)
	if err != nil {
		return q, err
	}
	for _, c := range clients {
		q.setting.Clients = append(q.setting.Clients, plan.Client(c))
	}
	if q.setting.Placement, err = f.placement(d.Matrix.Sites()); err != nil {
		return q, err
	}
	if q.setting.Load, err = f.load(); err != nil {
		return q, err
	}
	if q.systems, err = planning.Systems(verb, f.protocols, plan.Systems(), plan.Floor); err != nil {
		return q, err
	}
	q.goal, err = ParseBy(f.by)
	return q, err
}

// maxPartitions is how many partitions a plan has at most: it takes time by the square of them.
const maxPartitions = 64

// placement is the ring that store init makes of the same flags.
func (f *asked) placement(sites []wan.Site) ([][]wan.Site, error) {
	n, replicas := f.partitions, f.replicas
	if n == 0 {
		n = min(len(sites), maxPartitions)
	}
	switch {
	case n < 1 || n > maxPartitions:
		return nil, command.Usagef("%s: --partitions is %d; want 1 to %d", verb, n, maxPartitions)
	case len(sites) > store.MaxSites:
		return nil, command.Usagef("%s: --wan has %d sites; a store has at most %d", verb, len(sites), store.MaxSites)
	case replicas == 3:
		replicas = min(replicas, len(sites))
	}
	leaders := make([]string, len(f.leaders))
	for i, name := range f.leaders {
		leaders[i] = strings.TrimSpace(name)
	}
	ring, err := store.Ring(command.SiteNames(sites), n, replicas, leaders)
	if err != nil {
		return nil, command.Usagef("%s: --replicas, --leaders: %w", verb, err)
	}
	var out [][]wan.Site
	for _, names := range ring {
		var at []wan.Site
		for _, name := range names {
			at = append(at, wan.Site(name))
		}
		out = append(out, at)
	}
	return out, nil
}

// planKeys is how many keys transactions draw from, all as popular as each other: hardly ever do
// two of a transaction's keys meet, and what is popular makes no difference to the model.
const planKeys = 1_000_000

// load understands --txns.
func (f *asked) load() (plan.Load, error) {
	l := plan.Load{Declared: f.declared, Stale: f.stale, Seed: f.seed}
	keys, err := workload.Zipfian(planKeys, 0)
	if err != nil {
		return l, err
	}
	switch f.txns {
	case "retwis":
		l.Workload = workload.Retwis{Keys: keys}
		return l, nil
	case "ycsbt":
		l.Workload = counted{keys, 4, 4}
		return l, nil
	}
	given := map[string]int{"reads": 0, "writes": 0, "locality": 0}
	seen := map[string]bool{}
	for _, part := range strings.Split(f.txns, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(value)
		if _, known := given[name]; !known || err != nil {
			return l, command.Usagef("%s: --txns: %q; want retwis, ycsbt, or reads=N, writes=N, locality=PERCENT with commas "+
				"between%s", verb, part, nearest.Hint(name, []string{"retwis", "ycsbt", "reads", "writes", "locality"}))
		}
		if seen[name] && given[name] != n {
			return l, command.Usagef("%s: --txns: %s=%d and %s=%d; want one of them", verb, name, given[name], name, n)
		}
		given[name], seen[name] = n, true
	}
	c := counted{keys, given["reads"], given["writes"]}
	switch {
	case min(c.reads, c.writes) < 0 || max(c.reads, c.writes) < 1 || max(c.reads, c.writes) > maxOps:
		return l, command.Usagef("%s: --txns: reads=%d,writes=%d; want one at least and %d at most", verb, c.reads, c.writes,
			maxOps)
	case given["locality"] < 0 || given["locality"] > 100:
		return l, command.Usagef("%s: --txns: locality=%d; want 0 to 100", verb, given["locality"])
	}
	l.Workload, l.Locality = c, given["locality"]
	return l, nil
}

// ParseSystem understands the name of a protocol that the model knows.
func ParseSystem(name string) (plan.System, error) {
	return planning.System(verb, name, plan.Systems())
}

// ParseBy understands what a placement is best by: a measure, of all transactions or of a class,
// such as p95-rpt.
func ParseBy(text string) (plan.Goal, error) {
	if !slices.Contains(measureNames(), text) {
		return plan.Goal{}, command.Usagef("%s: --by is %q; want mean, p50, p95 or worst, alone or with a class: p95-ro, "+
			"p95-lrt, p95-rpt%s", verb, text, nearest.Hint(text, measureNames()))
	}
	measure, class, _ := strings.Cut(text, "-")
	g := plan.Goal{Measure: plan.Measure(measure), Class: plan.Class(class)}
	if class == "" {
		g.Class = plan.All
	}
	return g, nil
}

// plan computes what is asked for.
func (p *program) plan(ctx context.Context, q question) (*planned, error) {
	r := &planned{question: q}
	bar := command.NewProgress(p.Err)
	defer bar.Clear()
	for i, system := range q.systems {
		s := q.setting
		if q.search && !system.Whole() {
			goal := q.goal
			goal.System = system
			found, err := plan.Search{Setting: s, Goal: goal}.Best(func(done, of int) error {
				if ctx.Err() != nil {
					return errors.New("interrupted")
				}
				if !bar.Terminal {
					return nil
				}
				bar.Report(bench.Progress{Experiment: verb, Done: i*of + done, Total: len(q.systems) * of, Doing: string(system)})
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", verb, err)
			}
			s.Placement = found.Placement
		}
		one, err := planSystem(s, system)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", verb, err)
		}
		r.systems = append(r.systems, one)
	}
	return r, nil
}

// maxOps is how many keys a transaction has at most.
const maxOps = 100

// counted makes transactions that read and write so many keys. What is written was read, as far as
// there are reads.
type counted struct {
	workload.Keys
	reads, writes int
}

// Next implements workload.Workload.
func (w counted) Next(r *rand.Rand) workload.Txn {
	t := workload.Txn{Name: "txn"}
	for i := range max(w.reads, w.writes) {
		t.Ops = append(t.Ops, workload.Op{Key: w.Draw(r), Read: i < w.reads, Write: i < w.writes})
	}
	return t
}

// Package plancmd is the command foresay smr plan.
package plancmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// asked is the command line of 'smr plan'.
type asked struct {
	wan       string
	replicas  string
	among     []string
	clients   []string
	leader    string
	protocols []string
	by        string
	slack     time.Duration
	jitter    time.Duration
	busy      bool
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
		Short: "Tell what each protocol gives to clients in a network, and where replicas are best",
		Long: `Tell, from a matrix of round-trip times, how long clients of each protocol wait until a command is
durable and until it is executed, beside what is physically possible, and where replicas are best
placed.

  foresay smr plan --wan na3                           the placement of a paper
  foresay smr plan --wan net.json --replicas 3         the best placement for each protocol
  foresay smr plan --wan net.json --replicas a,b,c --clients a=3,d --per-client
  foresay smr plan --wan net.json --replicas 4 --protocol pbft,zyzzyva

Of protocols whose replicas may lie, which are asked for by name, it tells when the first reply
comes, on which a client can go on if it guesses, when the reply is confirmed, and what a read takes
that goes around the order. The  figures are of a model in which nobody waits for others: Fast Paxos is that fast only if
commands do not collide, EPaxos only if they do not conflict. --check has the protocols run in the
simulator and compares; it fails where a measurement is more than 5 % off what the model expects,
which is a range where an execution depends on what else goes on.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.run(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+
		", or a `file` of sites and round-trip times")
	flags.StringVar(&f.replicas, "replicas", "",
		"how many, to search the best placement, or the `sites` with commas between, the leader's first (default: those "+
			"of the network's paper, or 3 if there are as many sites)")
	flags.StringSliceVar(&f.among, "among", nil, "the `sites` that are searched (default all)")
	flags.StringSliceVar(&f.clients, "clients", []string{"all"},
		"all, or the clients' `sites`, with weights if they differ: a=3,b")
	flags.StringVar(&f.leader, "leader", "",
		"the `site` of the leader or coordinator (default: the best, or the first of --replicas)")
	flags.StringSliceVar(&f.protocols, "protocol", nil, "only these protocols, with commas between")
	flags.StringVar(&f.by, "by", "",
		"what the best is the best for: durable or executed, then -p50, -p95 or -worst (default durable-p50); of "+
			"Byzantine protocols first, confirmed or read (default confirmed-p50)")
	flags.DurationVar(&f.slack, "slack", 0, "what Domino's clients add to the arrival times that they predict")
	flags.DurationVar(&f.jitter, "jitter", 0,
		"a bound of the jitter of each link between sites, on top of the network's own")
	flags.BoolVar(&f.busy, "busy", false, "other commands come all the time, so that Domino's replicas tell sooner how "+
		"far they are")
	f.Flags(flags)
	command.SetChoices(flags.Lookup("protocol"), planning.Names(systems()))
	command.SetChoices(flags.Lookup("by"), goals())
	return c
}

// question is what the flags ask.
type question struct {
	network  string
	setting  plan.Setting // without replicas if they are searched
	count    int          // of replicas to be placed, 0 if they are given
	among    []wan.Site
	systems  []plan.System
	until    plan.Moment
	share    float64
	jittered bool // some link between sites has jitter
	rough    bool // or loses something, or is thin
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
	return f.Show(ctx, p.Program, "smr plan", r)
}

// longestPlanned is the longest slack and jitter, as of the delays in a network's file. Sums of
// them are far from what a Duration can hold.
const longestPlanned = 24 * time.Hour

// question understands the flags.
func (f *asked) question() (question, error) {
	q := question{network: f.wan}
	d, err := planning.Network("smr plan", f.wan)
	if err != nil {
		return q, err
	}
	q.setting = plan.Setting{WAN: d.Matrix, Leader: wan.Site(f.leader), Slack: f.slack, Busy: f.busy}
	switch {
	case f.slack < 0 || f.slack > longestPlanned:
		return q, command.Usagef("smr plan: --slack is %v; want 0 to a day", f.slack)
	case f.jitter < 0 || f.jitter > longestPlanned:
		return q, command.Usagef("smr plan: --jitter is %v; want 0 to a day", f.jitter)
	}
	for path, l := range d.Matrix.Links() {
		if path.From != path.To {
			if l.Jitter += f.jitter; f.jitter > 0 {
				q.setting.WAN = q.setting.WAN.WithLink(path, l)
			}
			q.jittered = q.jittered || l.Jitter > 0
			q.rough = q.rough || l.Loss > 0 || l.Tail > 0 || l.BytesPerSecond > 0
		}
	}
	clients, err := planning.Clients("smr plan", f.clients, d.Matrix)
	if err != nil {
		return q, err
	}
	for _, c := range clients {
		q.setting.Clients = append(q.setting.Clients, plan.Client(c))
	}
	if q.systems, err = f.systems(); err != nil {
		return q, err
	}
	if err := f.placement(&q, d); err != nil {
		return q, err
	}
	q.until, q.share, err = ParseBy(cmp.Or(f.by, q.usual().String()+"-p50"))
	if err == nil && !slices.Contains(q.moments(), q.until) {
		err = command.Usagef("smr plan: --by is %q, of which %s has nothing to say", f.by, q.systems[1])
	}
	return q, err
}

// usual is the moment by which a plan is best, unless it is asked for another one.
func (q question) usual() plan.Moment {
	if q.systems[0].Byzantine() {
		return plan.Confirmed
	}
	return plan.Durable
}

// moments are those that the tables have.
func (q question) moments() []plan.Moment { return q.systems[0].Moments() }

// systems are all that can be asked for.
func systems() []plan.System { return slices.Concat(plan.Systems(), plan.ByzantineSystems()) }

// ParseSystem understands the name of a protocol.
func ParseSystem(name string) (plan.System, error) {
	return planning.System("smr plan", name, systems())
}

// systems returns the floor and the protocols that are asked for, all of one family: two families
// have no floor in common.
func (f *asked) systems() ([]plan.System, error) {
	if len(f.protocols) == 0 {
		return append([]plan.System{plan.Floor}, plan.Systems()...), nil
	}
	all, err := planning.Systems("smr plan", f.protocols, systems(), plan.Floor)
	if err != nil {
		return nil, err
	}
	for _, s := range all[1:] {
		if s.Byzantine() != all[1].Byzantine() {
			return nil, command.Usagef("smr plan: --protocol: %s and %s do not survive the same faults; ask for one at a time",
				all[1], s)
		}
	}
	if all[1].Byzantine() {
		all[0] = plan.ByzantineFloor
	}
	return all, nil
}

// least is how few replicas make sense: with fewer, nobody may lie.
func (q question) least() int {
	if q.systems[0].Byzantine() {
		return 4
	}
	return 1
}

// placement understands where replicas are, or how many.
func (f *asked) placement(q *question, d wan.Deployment) error {
	n, err := strconv.Atoi(f.replicas)
	all := d.Matrix.Sites()
	switch {
	case f.replicas == "" && len(d.Replicas) >= q.least() && f.among == nil:
		q.setting.Replicas = d.Replicas
	case f.replicas == "":
		q.count = min(max(3, q.least()), max(1, len(all)))
	case err == nil:
		if q.count = n; n < 1 || n > command.MaxReplicas {
			return command.Usagef("smr plan: --replicas is %d; want 1 to %d", n, command.MaxReplicas)
		}
	default:
		names := strings.Split(f.replicas, ",")
		if q.setting.Replicas, err = planning.Sites("smr plan", "--replicas", names, d.Matrix); err != nil {
			return err
		}
		if len(q.setting.Replicas) > command.MaxReplicas {
			return command.Usagef("smr plan: --replicas has %d sites; want at most %d", len(q.setting.Replicas),
				command.MaxReplicas)
		}
	}
	if n := q.count + len(q.setting.Replicas); n < q.least() {
		return command.Usagef("smr plan: %s of %s do not survive one that lies; want at least %d",
			command.Counted(n, "replica"), q.systems[1], q.least())
	}
	if q.among, err = planning.Sites("smr plan", "--among", f.among, d.Matrix); err != nil {
		return err
	}
	for i, s := range q.among {
		if slices.Contains(q.among[:i], s) {
			return command.Usagef("smr plan: --among has %q twice", s)
		}
	}
	if q.count == 0 {
		if f.among != nil {
			return command.Usagef("smr plan: --among is for a search; give --replicas a number")
		}
		if f.leader != "" && !slices.Contains(q.setting.Replicas, q.setting.Leader) {
			return command.Usagef("smr plan: --leader: there is no replica at %q; they are at %s", f.leader,
				command.Joined(command.SiteNames(q.setting.Replicas)))
		}
		return nil
	}
	if q.among == nil {
		q.among = all
	}
	if q.count > len(q.among) {
		return command.Usagef("smr plan: there are %s to be placed, for %s", command.Counted(q.count, "replica"),
			command.Counted(len(q.among), "site"))
	}
	if f.leader != "" && !slices.Contains(q.among, q.setting.Leader) {
		return command.Usagef("smr plan: --leader: there is no replica at %q; they are at %s", f.leader,
			command.Joined(command.SiteNames(q.among)))
	}
	return nil
}

// ParseBy understands what a plan is best by: a moment and a share of the clients, such
// as executed-p95.
func ParseBy(text string) (plan.Moment, float64, error) {
	shares := map[string]float64{"p50": 0.5, "p95": 0.95, "worst": 1}
	kind, share, _ := strings.Cut(text, "-")
	for m := plan.Durable; m <= plan.Read; m++ {
		if m.String() == kind && shares[share] > 0 {
			return m, shares[share], nil
		}
	}
	return 0, 0, command.Usagef("smr plan: --by is %q; want durable or executed, of Byzantine protocols first, confirmed "+
		"or read, and -p50, -p95 or -worst%s", text, nearest.Hint(text, goals()))
}

// goals are what --by can be.
func goals() (names []string) {
	for m := plan.Durable; m <= plan.Read; m++ {
		for _, share := range []string{"p50", "p95", "worst"} {
			names = append(names, m.String()+"-"+share)
		}
	}
	return names
}

// plan computes what is asked for.
func (p *program) plan(ctx context.Context, q question) (*planned, error) {
	r := &planned{question: q}
	bar := command.NewProgress(p.Err)
	defer bar.Clear()
	for i, system := range q.systems {
		s, err := q.place(system, func(done, of int) error {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if of > slowSearch {
				bar.Report(bench.Progress{Experiment: "smr plan", Done: i*of + done, Total: len(q.systems) * of,
					Doing: string(system)})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("smr plan: %w", err)
		}
		rows, err := plan.Latencies(s, system)
		if err != nil {
			return nil, fmt.Errorf("smr plan: %w", err)
		}
		r.systems = append(r.systems, &plannedSystem{system: system, setting: s, rows: rows})
	}
	return r, r.findLeaders()
}

// slowSearch is how many placements take long enough to tell how far the search is.
const slowSearch = 20_000

// place returns the setting with the replicas for a system.
func (q question) place(system plan.System, progress func(done, of int) error) (plan.Setting, error) {
	s := q.setting
	if q.count == 0 {
		return s, nil
	}
	best, err := plan.Search{Setting: s, Among: q.among, Replicas: q.count, Goal: q.goal(system)}.Best(progress)
	s.Replicas, s.Leader = best.Replicas, ""
	return s, err
}

func (q question) goal(system plan.System) plan.Goal {
	return plan.Goal{System: system, Until: q.until, Share: q.share}
}

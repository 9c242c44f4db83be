package replicated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// Gap is what a replica's death cost.
type Gap struct {
	// Role is what the replica said that it was, in the protocol's words.
	Role string
	// All is the longest time, from the last answer before the death on, in which no client was
	// answered. One is the longest in which some client was not, of those that ask all the time.
	All, One time.Duration
	// Acknowledged writes, and how many of them were not in the state of some replica at the end.
	Acknowledged, Lost int
}

// A Victim is which replica is killed.
type Victim uint8

const (
	// Leader is the one that leads at that moment. There is none if the protocol has none.
	Leader Victim = iota
	// Other is one that does not lead: each of them, by the seed.
	Other
)

// Times of a failover.
const (
	beforeDeath = time.Second     // and up to a second more, by chance
	afterDeath  = 3 * time.Second // clients call all the time
	recovery    = 10 * time.Second
)

// Failover kills a replica of a setting once, in the middle of the clients' calls, and looks what
// came of it. The replica comes back later with its disk. Each call must have a key of its own.
func Failover(s Setting, v Victim) (Gap, error) {
	c, err := newCluster(s)
	if err != nil {
		return Gap{}, err
	}
	if err := c.warm(); err != nil {
		return Gap{}, err
	}
	w := watch{cluster: c, last: map[*caller]time.Duration{}}
	c.done = w.answered
	begin := c.Now()
	c.start(begin + beforeDeath + time.Second + afterDeath) // until nobody looks any more: else the end would be a gap
	if err := c.Pass(beforeDeath + time.Duration(c.rand.Int64N(int64(time.Second)))); err != nil {
		return Gap{}, err
	}
	victim, role := c.victim(v)
	if err := c.Err(); err != nil {
		return Gap{}, err
	}
	w.gap.Role, w.from = role, c.Now()
	c.Crash(victim, sim.KeepNone)
	if err := c.Pass(afterDeath); err != nil {
		return Gap{}, err
	}
	w.end()
	c.Restart(victim)
	for since := c.Now(); ; {
		if err := c.Pass(time.Second); err != nil {
			return Gap{}, err
		}
		if w.gap.Lost = c.missing(w.keys); w.gap.Lost == 0 || c.Now()-since >= recovery {
			break
		}
	}
	if w.gap.Acknowledged = len(w.keys); w.gap.Lost > 0 {
		c.fail("%d of %d acknowledged writes are not in the state of all replicas", w.gap.Lost, len(w.keys))
	}
	return w.gap, c.Err()
}

// victim returns the replica that is to be killed, and its role.
func (c *cluster) victim(v Victim) (protocol.ID, string) {
	leaders, others, roles := []protocol.ID{}, []protocol.ID{}, map[protocol.ID]string{}
	c.ask(func(id protocol.ID, s smr.Status) {
		roles[id] = s.Role
		if s.Leader == id {
			leaders = append(leaders, id)
		} else {
			others = append(others, id)
		}
	})
	from := others
	if v == Leader {
		from = leaders
	}
	if len(from) == 0 {
		c.fail("there is no such replica to be killed; the roles are %v", roles)
		return 0, ""
	}
	id := from[c.Seed%uint64(len(from))]
	return id, roles[id]
}

// watch notes how long nobody was answered.
type watch struct {
	*cluster
	from time.Duration // when the replica died; 0 before, and after the end
	any  time.Duration // the last answer
	last map[*caller]time.Duration
	keys []string // acknowledged
	gap  Gap
}

func (w *watch) answered(cl *caller, call call) {
	now := w.Now()
	if w.from > 0 {
		w.gap.All = max(w.gap.All, now-w.any)
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.any, w.last[cl] = now, now
	w.keys = append(w.keys, call.key)
}

// end counts those that were not answered until now.
func (w *watch) end() {
	now := w.Now()
	w.gap.All = max(w.gap.All, now-w.any)
	for _, cl := range w.callers {
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.from = 0
}

// missing returns how many keys are not in the state of some replica.
func (c *cluster) missing(keys []string) int {
	lost := 0
	for _, key := range keys {
		for _, m := range c.Members {
			if !c.stores[m.ID].has(key) {
				lost++
				break
			}
		}
	}
	return lost
}

func (g Gap) String() string {
	return fmt.Sprintf("%s killed: nobody answered for %v, somebody not for %v, %d of %d writes lost", g.Role, g.All,
		g.One, g.Lost, g.Acknowledged)
}

func smrFailover() bench.Experiment {
	return bench.Experiment{
		Name:    "smr-failover",
		Summary: "how long nobody is answered when any of three replicas in North America is killed",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(failoverPoints),
		Figures: []figure.Spec{
			{
				Title: "Time without an answer after a replica's death, longest of all kills", Y: "gap_max_ms", YLabel: "gap (ms)",
				Across: []string{"system", "killed", "options"}, Series: []string{"ack"},
			},
			{
				Suffix: "client", Title: "The same for the client that waits longest", Y: "one_client_gap_max_ms",
				YLabel: "gap (ms)",
				Across: []string{"system", "killed", "options"}, Series: []string{"ack"},
			},
		},
	}
}

// death is one case of the experiment.
type death struct {
	system System
	victim Victim
	killed string // the victim, as rows have it
	kills  int
}

// deaths returns the cases: in protocols with a leader it is killed, or another replica; in the
// others any replica is, in turn.
func deaths(o bench.Options) []death {
	leaders, others := bench.Pick(o, 4, 1000), bench.Pick(o, 2, 200)
	var all []death
	for _, s := range Systems() {
		d := death{system: s, victim: Other}
		if s.Name == "epaxos" {
			d.system.Name = s.named("writes commute")
		}
		if s.Leaderless {
			d.killed, d.kills = "any", 3*others
			all = append(all, d)
		} else {
			d.killed, d.kills = "other", others
			leads := d
			leads.victim, leads.killed, leads.kills = Leader, "leader", leaders
			all = append(all, leads, d)
		}
		if s.Name == "epaxos" {
			d.system, d.kills = System{Protocol: conflicting(s.Protocol)}, others
			d.system.Name = s.named("all writes conflict")
			all = append(all, d)
		}
	}
	return all
}

// conflicting returns the protocol with state machines that do not tell which commands commute.
func conflicting(p smr.Protocol) smr.Protocol {
	build := p.NewReplica
	p.NewReplica = func(c smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		c.Machine = struct{ smr.StateMachine }{c.Machine}
		return build(c)
	}
	return p
}

func failoverPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, d := range deaths(o) {
		for _, ack := range acks() {
			points = append(points, bench.Point{
				Doing: fmt.Sprintf("%s %s, %s killed %d times", d.system.Name, ack, d.killed, d.kills),
				Run:   func(ctx context.Context) ([]table.Row, error) { return failoverRow(ctx, o, d, ack) },
			})
		}
	}
	return points
}

func failoverRow(ctx context.Context, o bench.Options, d death, ack smr.Ack) ([]table.Row, error) {
	na3, err := wan.Preset("na3")
	if err != nil {
		return nil, err
	}
	noise := wan.InterDatacentre()
	na3.Matrix = na3.Matrix.WithNoise(noise)
	var all, one []time.Duration
	var roles []string
	acknowledged, lost := 0, 0
	for i := range d.kills {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := Failover(Setting{
			Protocol: d.system.Protocol, WAN: na3, Seed: o.Seed*1_000_000 + uint64(i), Ack: ack, Every: 100 * time.Millisecond,
			Sync: bench.SyncTime,
		}, d.victim)
		if err != nil {
			return nil, err
		}
		all, one = append(all, g.All), append(one, g.One)
		acknowledged, lost = acknowledged+g.Acknowledged, lost+g.Lost
		if !slices.Contains(roles, g.Role) {
			roles = append(roles, g.Role)
		}
	}
	slices.Sort(all)
	slices.Sort(one)
	slices.Sort(roles)
	named := table.Row{table.Is("system", d.system.Base()), table.Is("wan", "na3"), table.Is("site", "all"),
		table.Is("ack", ack.String()), table.Is("jitter", noise.String())}
	return []table.Row{slices.Concat(named, d.system.Cells(), table.Row{
		table.Is("durable", "yes"),
		table.Is("batch", "default"),
		table.Is("killed", d.killed),
		table.Is("role", strings.Join(roles, ", ")),
		table.Is("kills", d.kills),
		table.Measure("gap_p50_ms", table.Ms(table.Quantile(all, 0.5))),
		table.Measure("gap_p99_ms", table.Ms(table.Quantile(all, 0.99))),
		table.Measure("gap_max_ms", table.Ms(table.Quantile(all, 1))),
		table.Measure("one_client_gap_p50_ms", table.Ms(table.Quantile(one, 0.5))),
		table.Measure("one_client_gap_max_ms", table.Ms(table.Quantile(one, 1))),
		table.Is("acknowledged", acknowledged),
		table.Is("lost", lost),
	})}, nil
}

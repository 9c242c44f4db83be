package plancmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// planned is the answer to a question.
type planned struct {
	question question
	systems  []*plannedSystem // the floor first
}

// plannedSystem is what one protocol gives.
type plannedSystem struct {
	system  plan.System
	setting plan.Setting
	rows    []plan.Row
	// better, if it has replicas, is the given placement with another leader, who leads better.
	better plan.Placement
	check  []plansim.Comparison
}

// replicas returns the sites, the leader's first if there is one.
func (s *plannedSystem) replicas() []wan.Site {
	out := slices.Clone(s.setting.Replicas)
	if i := slices.Index(out, s.setting.Leader); i > 0 && s.system.Leads() {
		out = slices.Insert(slices.Delete(out, i, i+1), 0, s.setting.Leader)
	}
	return out
}

// leader returns the site of the leader, "" if there is none.
func (s *plannedSystem) leader() wan.Site {
	if !s.system.Leads() {
		return ""
	}
	return s.replicas()[0]
}

// findLeaders looks whether another replica would lead better than the first.
func (r *planned) findLeaders() error {
	if r.question.count > 0 || r.question.setting.Leader != "" {
		return nil
	}
	for _, s := range r.systems {
		if !s.system.Leads() {
			continue
		}
		best, err := plan.BestLeader(s.setting, r.question.goal(s.system))
		if err != nil {
			return fmt.Errorf("smr plan: %w", err)
		}
		if best.Latency < plan.Quantile(plan.Of(s.rows, s.system, r.question.until), r.question.share) {
			s.better = best
		}
	}
	return nil
}

// shares are the columns of the tables.
func shares() []float64 { return []float64{0.5, 0.95, 1} }

// WriteText writes tables.
func (r *planned) WriteText(w io.Writer, perClient bool) {
	q := r.question
	fmt.Fprintf(w, "%s; ms\n", r.heading())
	r.quantiles(plan.Quantile).Write(w)
	if q.jittered {
		fmt.Fprintln(w, "\nif each message takes all of its link's jitter")
		r.quantiles(plan.LongestQuantile).Write(w)
	}
	r.writeLeaders(w)
	r.writeConditions(w)
	if q.rough {
		fmt.Fprintln(w, "what links lose, their tails and their bandwidths are not in the model")
	}
	if perClient {
		for _, m := range q.moments() {
			fmt.Fprintf(w, "\n%v, by client\n", m)
			r.clients(m).Write(w)
		}
	}
	if t := r.checks(); len(t.Rows) > 1 {
		how := "each call alone"
		if q.setting.Busy {
			how = "900 calls a second"
		}
		if q.jittered {
			how += ", without jitter, which is left out of the model here too"
		}
		fmt.Fprintf(w, "\nmeasured in the simulator, %s; off: the client furthest from what the model expects\n", how)
		t.Write(w)
		if names := r.ranging(); len(names) > 0 {
			fmt.Fprintf(w, "of %s the model expects a range, from the figure above to one that other messages make possible; "+
				"--json has it\n", strings.Join(names, ", "))
		}
	}
}

// heading says what the question was.
func (r *planned) heading() string {
	q := r.question
	where := "replicas at " + command.Joined(command.SiteNames(q.setting.Replicas))
	if q.count > 0 {
		where = fmt.Sprintf("%s where %s is best", command.Counted(q.count, "replica"), q.by())
	}
	return fmt.Sprintf("%s, %s, %s", q.network, command.Counted(len(q.setting.Clients), "client"), where)
}

func (q question) by() string {
	return fmt.Sprintf("%v-%s", q.until, map[float64]string{0.5: "p50", 0.95: "p95", 1: "worst"}[q.share])
}

// quantiles is the table of all systems.
func (r *planned) quantiles(of func([]plan.Row, float64) time.Duration) *planning.Table {
	head := []string{"", "replicas"}
	for _, m := range r.question.moments() {
		head = append(head, m.String()+" p50", "p95", "worst")
	}
	t := &planning.Table{Left: 2, Rows: [][]string{head}}
	for _, s := range r.systems {
		place := strings.Join(command.SiteNames(s.replicas()), " ")
		if r.question.count == 0 {
			place = string(s.leader())
			t.Rows[0][1] = "led by"
		}
		row := []string{string(s.system), place}
		for _, m := range r.question.moments() {
			for _, share := range shares() {
				row = append(row, planning.Millis(of(plan.Of(s.rows, s.system, m), share)))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writeLeaders tells which protocols another replica would lead better.
func (r *planned) writeLeaders(w io.Writer) {
	type verdict struct {
		leader       wan.Site
		value, after time.Duration
	}
	var order []verdict
	names := map[verdict][]string{}
	for _, s := range r.systems {
		if s.better.Replicas == nil {
			continue
		}
		v := verdict{s.better.Replicas[0], plan.Quantile(plan.Of(s.rows, s.system, r.question.until), r.question.share),
			s.better.Latency}
		if names[v] == nil {
			order = append(order, v)
		}
		names[v] = append(names[v], string(s.system))
	}
	for _, v := range order {
		fmt.Fprintf(w, "led by %s, %s of %s is %s rather than %s\n", v.leader, r.question.by(), command.Joined(names[v]),
			planning.Millis(v.after), planning.Millis(v.value))
	}
}

// writeConditions tells which of the figures hold only if commands keep out of each other's way.
func (r *planned) writeConditions(w io.Writer) {
	conditions := map[plan.System]string{
		plan.FastPaxos: "fastpaxos takes longer if calls overlap",
		plan.EPaxos:    "epaxos takes longer if commands conflict",
		plan.Zyzzyva:   "zyzzyva takes longer if a replica is slow or silent",
	}
	var named []string
	for _, s := range r.systems {
		if c := conditions[s.system]; c != "" {
			named = append(named, c)
		}
	}
	if len(named) > 0 {
		fmt.Fprintln(w, strings.Join(named, "; "))
	}
}

// clients is the table of what each client gets.
func (r *planned) clients(m plan.Moment) *planning.Table {
	t := &planning.Table{Left: 1, Rows: [][]string{{""}}}
	for _, c := range r.question.setting.Clients {
		name := string(c.Site)
		if c.Weight != 0 {
			name += " x" + strconv.FormatFloat(c.Weight, 'g', -1, 64)
		}
		t.Rows = append(t.Rows, []string{name})
	}
	for _, s := range r.systems {
		t.Rows[0] = append(t.Rows[0], string(s.system))
		for i, row := range plan.Of(s.rows, s.system, m) {
			t.Rows[1+i] = append(t.Rows[1+i], planning.Millis(row.Latency))
		}
	}
	return t
}

// checks is the table of what was measured.
func (r *planned) checks() *planning.Table {
	head := []string{""}
	for _, m := range r.question.moments() {
		head = append(head, m.String()+" p50", "p95", "off")
	}
	t := &planning.Table{Left: 1, Rows: [][]string{head}}
	for _, s := range r.systems {
		if s.check == nil {
			continue
		}
		row := []string{string(s.system)}
		for _, m := range r.question.moments() {
			measured, off := s.measured(m)
			row = append(row, planning.Millis(plan.Quantile(measured, 0.5)), planning.Millis(plan.Quantile(measured, 0.95)), off)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ranging returns the protocols that were measured elsewhere than the tables of the model say, but
// within the range that it expects.
func (r *planned) ranging() []string {
	var names []string
	for _, s := range r.systems {
		if slices.ContainsFunc(s.check, func(c plansim.Comparison) bool {
			return c.Claimed && c.Off() <= tolerated && float64((c.Latency-c.Measured).Abs()) > tolerated*float64(c.Latency)
		}) {
			names = append(names, string(s.system))
		}
	}
	return names
}

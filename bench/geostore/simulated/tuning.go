package simulated

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/workload/synthetic"
)

// strTuning has the store choose how far to speculate, beside settings that stay.
func strTuning() bench.Experiment {
	e := bench.Experiment{
		Name: "str-tuning",
		Summary: "ten keys read and updated on nine sites, by contention, users who go on at local commits: the store " +
			"chooses how far it speculates, against each choice by itself; a load that steps (STR figure 4)",
		Modes: []bench.Mode{bench.Virtual}, Intervals: append(nineIntervals(), "commits_of_best"),
	}
	measure := bench.PointsAtOnce(tuningPoints)
	e.Measure = func(ctx context.Context, r bench.Run) ([]table.Row, error) {
		rows, err := measure(ctx, r)
		besideBest(rows)
		return rows, err
	}
	for _, contention := range contentions() {
		e.Figures = append(e.Figures, figure.Spec{Suffix: contention, X: "clients", XLabel: "clients for each server",
			Title: "Contention " + contention + ", local and remote: commits, by how far the store speculates",
			Y:     "commits_per_s_of_27", YLabel: "commits per second on 27 servers", Series: []string{"system", "sl"},
			Where: table.Is("figure", contention)})
	}
	return e
}

// The degrees of Figure 4: what has the store choose, and settings that stay.
const tunedDegree = "tuned"

func staticDegrees() []string { return []string{"off", "reads", "1", "4", "8"} }

// degreeSystem is STR at a degree. Its users never wait: it is the store that says how long their
// chains are.
func degreeSystem(degree string) nineSystem {
	s := nineSystem{"str-external", "internal", longestChain + 1}
	if degree != tunedDegree {
		s.variant += "-" + degree
	}
	return s
}

// A fraction makes a load smaller that is the same otherwise: it has so many times fewer users and
// hot keys, and servers take as many times longer. To find a degree takes a minute or two, which at
// full size would take much longer to simulate than all other experiments.
type fraction int

func (f fraction) cpu() cpu {
	c := paperCPU()
	if f > 1 {
		c = cpu{fmt.Sprintf("%s/%d", c.name, f), c.call * time.Duration(f)}
	}
	return c
}

func (f fraction) load(contention string) synthetic.Config {
	c, err := synthetic.Named(contention)
	if err != nil {
		panic(err) // it is one of contentions
	}
	c.LocalHot, c.RemoteHot = c.LocalHot/uint64(f), c.RemoteHot/uint64(f)
	return c
}

// A tuning is a point of the experiment: users whose load is one of these contentions after the
// other.
type tuning struct {
	fraction
	clients     int // of each server at full size
	degree      string
	contentions []string
	seed        uint64
	warm        time.Duration // of a setting that stays, or has been found
	lasting     time.Duration
}

func tuningPoints(o bench.Options) (points []bench.Point) {
	add := func(of fraction, degree string, clients int, contentions ...string) {
		t := tuning{fraction: of, degree: degree, clients: clients, contentions: contentions, seed: o.Seed,
			warm: 2500 * time.Millisecond, lasting: 4 * time.Second}
		if of == 1 {
			t.warm, t.lasting = 1200*time.Millisecond, 1500*time.Millisecond
		}
		points = append(points, bench.Point{
			Doing: fmt.Sprintf("sl=%s contention=%s clients=%d cpu=%s", degree, contentions, clients, of.cpu().name),
			Run:   func(context.Context) ([]table.Row, error) { return t.run() },
		})
	}
	if o.Quick {
		for _, d := range []string{clockSIRep().name, tunedDegree, "off", "reads", "8"} {
			add(10, d, 80, "high-high")
		}
		return points
	}
	add(5, tunedDegree, 10, "high-low", "high-high")
	add(5, tunedDegree, 10, "high-high", "low-low")
	for _, clients := range []int{10, 80} {
		for _, contention := range contentions() {
			for _, d := range append([]string{clockSIRep().name, tunedDegree}, staticDegrees()...) {
				add(5, d, clients, contention)
			}
		}
	}
	for _, d := range []string{clockSIRep().name, "reads", "8"} {
		add(1, d, 80, "high-low")
	}
	return points
}

// run measures it: a row for each of its loads.
func (t tuning) run() (rows []table.Row, err error) {
	n := nine{system: degreeSystem(t.degree), servers: 1, users: t.clients / int(t.fraction), cpu: t.cpu(), seed: t.seed}
	if t.degree == clockSIRep().name {
		n.system = clockSIRep()
	}
	u, err := n.settle()
	if err != nil {
		return nil, err
	}
	defer u.close()
	now := 0 // which load it is
	u.start(func(x *user) func() job {
		var loads []func() job
		for _, contention := range t.contentions {
			loads = append(loads, u.synthetic(x, t.load(contention)))
		}
		return func() job { return loads[now]() }
	})
	for i, contention := range t.contentions {
		now = i
		var search []table.Cell
		if t.degree == tunedDegree {
			if search, err = u.searches(i > 0); err != nil {
				return nil, err
			}
		}
		if err := u.pass(t.warm, t.lasting); err != nil {
			return nil, err
		}
		row := u.row(table.Is("contention", contention))
		for j := range row {
			switch row[j].Name {
			case "sl":
				row[j].Value = t.sl()
			case "clients":
				row[j].Value = t.clients
			case "commits_per_s_of_27":
				n, _ := row.Number("commits_per_s_of_27")
				row[j].Value = n * float64(t.fraction)
			}
		}
		row = append(append(row, search...), table.Is("load", strconv.Itoa(i+1)+" of "+strconv.Itoa(len(t.contentions))))
		if len(t.contentions) == 1 && t.fraction > 1 {
			row = append(row, table.Is("figure", contention))
		}
		rows = append(rows, row)
		u.tally = tally{aborted: map[store.Reason]int{}}
	}
	return rows, nil
}

// sl is what the rows say of how far the store speculates.
func (t tuning) sl() string {
	switch t.degree {
	case clockSIRep().name, "off":
		return "none"
	}
	return t.degree
}

// How often users look whether the store has found its degree, after how many windows it has not
// noticed that the load is another one, and how long they wait at most.
const (
	lookEvery    = 100 * time.Millisecond
	noticeWithin = 20
	searchWithin = 10 * time.Minute
)

// searches lets time pass until the store has found its degree, or found another one, and returns
// what it took: windows, time, and commits meanwhile; and the degree.
func (u *users) searches(again bool) ([]table.Cell, error) {
	began, noticed := u.Now(), !again
	first, err := u.chosen()
	if err != nil {
		return nil, err
	}
	u.on = true
	for {
		if err := u.Pass(lookEvery); err != nil {
			return nil, err
		}
		s, err := u.chosen()
		if err != nil {
			return nil, err
		}
		windows, took := s.Tuning.Windows-first.Tuning.Windows, u.Now()-began
		noticed = noticed || !s.Tuning.Settled
		switch {
		case took > searchWithin:
			return nil, fmt.Errorf("simulated: no degree is found within %v", searchWithin)
		case windows > 0 && s.Tuning.Settled && (noticed || windows >= noticeWithin):
			cells := []table.Cell{table.Measure("settled_windows", float64(windows)),
				table.Measure("settled_s", took.Seconds()), table.Measure("chain", chainOf(s.Degree)),
				table.Measure("search_commits_per_s", float64(u.committed)/took.Seconds())}
			u.on, u.tally = false, tally{aborted: map[store.Reason]int{}}
			return cells, nil
		}
	}
}

// chainOf is a degree as a number: the length of a chain, or -1 for off.
func chainOf(degree string) float64 {
	switch degree {
	case "off":
		return -1
	case "reads":
		return 0
	}
	n, err := strconv.Atoi(degree)
	if err != nil {
		panic(err) // it is one of the store's
	}
	return float64(n)
}

// chosen asks the coordinator that chooses the degree.
func (u *users) chosen() (s store.SpeculationStatus, err error) {
	i := slices.IndexFunc(u.Layout.Sites, func(s store.Site) bool { return len(s.Coordinators) > 0 })
	var id protocol.ID = u.Layout.Sites[i].Coordinators[0]
	delete(u.states, id)
	u.Deliver(id, store.StatusQuery{Ref: 1})
	if err := u.Await(time.Second, func() bool { return u.states[id].Ref == 1 }); err != nil {
		return s, err
	}
	if s = u.states[id]; s.Tuning == nil {
		return s, fmt.Errorf("simulated: coordinator %d does not choose the degree", id)
	}
	return s, nil
}

// besideBest adds to rows of a degree that the store has chosen how its commits stand to those of
// the best setting that stays, and to those of clocksi-rep.
func besideBest(rows []table.Row) {
	for i, row := range rows {
		if row.Value("sl") != tunedDegree {
			continue
		}
		best, base := 0.0, 0.0
		for _, r := range rows {
			same := func(column string) bool { return r.Value(column) == row.Value(column) }
			if r.Value("sl") == tunedDegree || !same("clients") || !same("cpu") || !same("contention") {
				continue
			}
			n, _ := r.Number("commits_per_s")
			if best = max(best, n); r.Value("system") == clockSIRep().name {
				base = n
			}
		}
		if own, ok := row.Number("commits_per_s"); ok && best > 0 && base > 0 {
			rows[i] = append(row, table.Measure("commits_of_best", own/best),
				table.Measure("commits_of_clocksi-rep", own/base))
		}
	}
}

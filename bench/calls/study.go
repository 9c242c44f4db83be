package calls

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
)

// A study is an experiment at its chosen size.
type study struct {
	top topology
	// groups hold the trials that are compared with each other. The first of a group
	// is what the others are measured against.
	groups [][]trial
	// rounds is how often each trial is repeated in real mode.
	rounds int
	// ratios are compared besides the mean latency.
	ratios []ratio
	// paired, in real mode, measures the first of a group anew next to each of the others,
	// before it and after it in turns: on a machine with other work only neighbours in time
	// compare. The ratios then have intervals.
	paired bool
}

// A trial is one stack under one load.
type trial struct {
	stack  stack
	params []table.Cell
	load   load
	cold   bool // the first requests over new connections are measured
}

func (t trial) String() string {
	s := t.stack.name
	for _, c := range t.params {
		s += fmt.Sprintf(" %s=%s", c.Name, table.Text(c.Value, -1))
	}
	return s
}

// stacks returns the systems that are compared. The first is what the others are
// measured against.
func stacks(v variant) []stack {
	return []stack{grpcStack(), foresayOff(v), foresayDo(v), foresayThen(v)}
}

// sideBySide makes a trial of the load for each system.
func sideBySide(v variant, params []table.Cell, l load) []trial {
	var group []trial
	for _, s := range stacks(v) {
		group = append(group, trial{stack: s, params: params, load: l})
	}
	return group
}

// A ratio is a column that compares a figure with the base's.
type ratio string

const (
	latencyRatio ratio = "ratio_to_grpc"
	opsRatio     ratio = "ops_ratio_to_grpc"
	cpuRatio     ratio = "cpu_ratio_to_grpc"
	bytesRatio   ratio = "bytes_ratio_to_grpc"
	worstRatio   ratio = "worst_ratio_to_grpc"
)

func (r ratio) of(f figures) float64 {
	switch r {
	case opsRatio:
		return f.opsPerSecond
	case cpuRatio:
		return f.cpuUsPerOp
	case bytesRatio:
		return f.bytesPerOp
	case worstRatio:
		return f.worstMs
	}
	return f.meanMs
}

// studied is an experiment that is a study.
type studied struct {
	bench.Experiment
	study func(bench.Options) study
}

// studyOf returns an experiment that measures a study.
func studyOf(e bench.Experiment, study func(bench.Options) study) studied {
	s := studied{e, study}
	s.Bubbles, s.Measure = true, s.measure
	return s
}

// Experiments returns the experiments on speculative calls, in the order in which they are best
// read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{
		chain().Experiment, chainRTT().Experiment, chainLength().Experiment, bandwidth().Experiment, overhead().Experiment,
		observeOverhead(), limits().Experiment, multilevel().Experiment,
	}
}

func (e studied) measure(ctx context.Context, r bench.Run) (rows []table.Row, err error) {
	s := newSession(e.study(r.Options), r)
	if r.Mode == bench.Virtual {
		err = s.virtual(ctx, r.Bubble)
	} else {
		err = s.real(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.rows(), nil
}

// A session is a study being run.
type session struct {
	study
	run   bench.Run
	done  int
	total int
	tally [][]*tally // of each group's trials
}

func newSession(s study, r bench.Run) *session {
	ses := &session{study: s, run: r}
	repeats := 1
	if r.Mode == bench.Real {
		repeats = s.rounds
	}
	for _, group := range s.groups {
		each := len(group)
		if s.paired && r.Mode == bench.Real {
			each = 2 * (len(group) - 1)
		}
		var tallies []*tally
		for range group {
			t := &tally{dist: &exactDistribution{}}
			if r.Mode == bench.Real {
				t.dist = newHistogram()
			}
			tallies = append(tallies, t)
		}
		ses.tally = append(ses.tally, tallies)
		ses.total += repeats * each
	}
	return ses
}

func (s *session) step(t trial) {
	s.run.Step(s.done, s.total, t.String())
	s.done++
}

// warmUp is the purpose of the requests that are not measured; rounds count from 0.
const warmUp = math.MaxUint64

// virtual runs each trial in a bubble of its own.
func (s *session) virtual(ctx context.Context, bubble func(func())) error {
	for g, group := range s.groups {
		for i, t := range group {
			s.step(t)
			var err error
			bubble(func() { err = s.inBubble(ctx, t, uint64(g), s.tally[g][i]) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) inBubble(outer context.Context, t trial, group uint64, into *tally) error {
	if err := outer.Err(); err != nil {
		return err
	}
	// The outer context's channel belongs to no bubble: waiting on it would stop virtual time.
	ctx := context.WithoutCancel(outer)
	top := s.top
	top.repeatable = true
	sys, err := openSystem(t.stack, bench.Virtual, top, t.load.callers)
	if err == nil {
		if !t.cold {
			err = s.warm(ctx, sys, t, group)
		}
		if err == nil {
			err = s.measure(ctx, sys, t, into, group, 0)
		}
	}
	if e := sys.close(); err == nil {
		err = e
	}
	return err
}

// real opens all systems and lets the trials of each group take turns, in another order each round.
func (s *session) real(ctx context.Context) (err error) {
	systems := map[stackKey]*system{}
	for _, group := range s.groups {
		for _, t := range group {
			if t.cold {
				continue
			}
			sys := systems[t.stack.key()]
			if sys == nil {
				sys, err = openSystem(t.stack, bench.Real, s.top, 0)
				systems[t.stack.key()] = sys
				defer func() {
					if e := sys.close(); err == nil {
						err = e
					}
				}()
				if err != nil {
					return err
				}
			}
			if err := sys.admit(t.load.callers); err != nil {
				return err
			}
		}
	}
	for r := range s.rounds {
		for g, group := range s.groups {
			for _, i := range bench.Random(s.run.Seed, uint64(g), uint64(r), 1).Perm(len(group)) {
				switch {
				case !s.paired:
					err = s.turn(ctx, systems, g, i, r)
				case i > 0:
					err = s.pair(ctx, systems, g, i, r)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// turn is a round of one trial.
func (s *session) turn(ctx context.Context, systems map[stackKey]*system, g, i, r int) error {
	t, into := s.groups[g][i], s.tally[g][i]
	s.step(t)
	if t.cold {
		return s.measureCold(ctx, t, into, uint64(g), uint64(r))
	}
	sys := systems[t.stack.key()]
	if len(into.rounds) == 0 {
		if err := s.warm(ctx, sys, t, uint64(g)); err != nil {
			return err
		}
	}
	return s.measure(ctx, sys, t, into, uint64(g), uint64(r))
}

// pair is a round of one trial, and one of its group's first beside it.
func (s *session) pair(ctx context.Context, systems map[stackKey]*system, g, i, r int) error {
	order := []int{0, i}
	if r%2 == 1 {
		order = []int{i, 0}
	}
	for _, k := range order {
		if err := s.turn(ctx, systems, g, k, r); err != nil {
			return err
		}
	}
	own, base := s.tally[g][i], s.tally[g][0]
	own.beside = append(own.beside, base.rounds[len(base.rounds)-1])
	return nil
}

// warm lets each caller make a few requests of the trial's kind: connections are
// made, what peers support is learnt.
func (s *session) warm(ctx context.Context, sys *system, t trial, group uint64) error {
	l := t.load
	l.period = 0
	l.perCaller = min(l.perCaller, 3)
	if s.run.Mode == bench.Real && l.span > 0 {
		l.span /= 4
	} else {
		l.span = 0
	}
	if _, err := play(ctx, sys, l, l.requests(s.run.Seed, group, warmUp)); err != nil {
		return err
	}
	return sys.settle(ctx)
}

// measureCold plays one round with servers and connections of its own.
func (s *session) measureCold(ctx context.Context, t trial, into *tally, group, n uint64) error {
	sys, err := openSystem(t.stack, bench.Real, s.top, t.load.callers)
	if err == nil {
		err = s.measure(ctx, sys, t, into, group, n)
	}
	if e := sys.close(); err == nil {
		err = e
	}
	return err
}

// measure plays one round. All trials of a group get the same requests in the same round.
func (s *session) measure(ctx context.Context, sys *system, t trial, into *tally, group, n uint64) error {
	l := t.load
	requests := l.requests(s.run.Seed, group, n)
	if s.run.Mode == bench.Real {
		runtime.GC() // the garbage of the trial before is not this one's
	} else {
		l.span = 0
	}
	calls, bytes, cpu, start := sys.begun(), sys.net.bytes.Load(), bench.CPUTime(), time.Now()
	latencies, err := play(ctx, sys, l, requests)
	elapsed := time.Since(start)
	if err != nil {
		return err
	}
	if err := sys.settle(ctx); err != nil {
		return err
	}
	r := round{
		latencies: latencies,
		elapsed:   l.elapsed(elapsed),
		calls:     sys.begun() - calls,
		bytes:     sys.net.bytes.Load() - bytes,
	}
	if s.run.Mode == bench.Real {
		r.cpu = bench.CPUTime() - cpu
	}
	into.add(r)
	return nil
}

// rows makes the result's rows, in the order of the study.
func (s *session) rows() []table.Row {
	var rows []table.Row
	for g, group := range s.groups {
		for i, t := range group {
			rows = append(rows, s.row(t, s.tally[g][i], s.tally[g][0]))
		}
	}
	return rows
}

// precision is what latencies are rounded to: in virtual time to a microsecond, which
// hides the nanoseconds by which servers are apart.
func (s *session) precision() time.Duration {
	if s.run.Mode == bench.Virtual {
		return time.Microsecond
	}
	return time.Nanosecond
}

func (s *session) row(t trial, own, base *tally) table.Row {
	row := slices.Concat(table.Row{table.Is("system", t.stack.name)}, table.Row(t.params))
	f := own.overall()
	milliseconds := func(d time.Duration) float64 { return table.Ms(d.Round(s.precision())) }
	row = append(row, table.Measure("mean_ms", milliseconds(own.mean())),
		table.Measure("p50_ms", milliseconds(own.dist.quantile(0.5))),
		table.Measure("p99_ms", milliseconds(own.dist.quantile(0.99))),
		table.Measure("ops_per_s", f.opsPerSecond))
	if f.cpuUsPerOp > 0 {
		row = append(row, table.Measure("cpu_us_per_op", f.cpuUsPerOp))
	}
	row = append(row, table.Measure("bytes_per_op", f.bytesPerOp),
		table.Measure("rpcs_per_op", float64(own.total.calls)/float64(own.count)))
	for _, r := range append([]ratio{latencyRatio}, s.ratios...) {
		if v := own.ratio(base, r.of); !math.IsNaN(v) {
			row = append(row, table.Measure(string(r), v))
		}
		if low, high := own.interval(base, r.of); len(own.beside) > 0 && !math.IsNaN(low) {
			name := strings.TrimSuffix(string(r), "_to_grpc")
			row = append(row, table.Measure(name+"_low", low), table.Measure(name+"_high", high))
		}
	}
	return row
}

package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/control"
)

// Report returns what has been found out up to now. With a Control the report has its status, and
// each method's mode; nil is allowed. It takes each kind of request's lock for well under a
// millisecond, one after the other.
func (c *Collector) Report(ctl *control.Control) *Report {
	r := &Report{
		Schema: Schema, Since: c.since, At: time.Now(), Budget: defaultBudget, Requests: []RequestReport{},
		LeftOut: c.missed.Load(), Broken: c.broken.Load(),
	}
	if ctl != nil {
		status := ctl.Status()
		r.Status, r.Budget = &status, status.Budget
	}
	c.mu.RLock()
	kinds := make([]*kind, 0, len(c.kinds))
	for _, k := range c.kinds {
		kinds = append(kinds, k)
	}
	c.mu.RUnlock()
	for _, k := range kinds {
		r.Requests = append(r.Requests, k.report(r))
	}
	inAll := func(q *RequestReport) float64 { return q.Foreseen.SavedMS * float64(q.Requests) }
	slices.SortFunc(r.Requests, func(a, b RequestReport) int {
		return cmp.Or(cmp.Compare(inAll(&b), inAll(&a)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return r
}

// defaultBudget is control.Config.Budget's default.
const defaultBudget = 0.1

// frozen is a copy of a kind, to report from without its lock.
type frozen struct {
	name             string
	total, recent    kindSums
	since            time.Time
	observed         *histogram
	without, ifReads *histogram
	ifPlain          *histogram
	stops            []Stop
	unworked         *histogram
	speculated       *histogram
	arms             [2]arm
	methods          []method
}

func (k *kind) freeze(now time.Time) *frozen {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn(now)
	f := &frozen{
		name: k.name, total: k.total, recent: k.now, since: k.windowed, observed: k.observed.freeze(),
		without: k.without.freeze(),
		ifReads: k.ifReads.freeze(), ifPlain: k.ifPlain.freeze(), stops: k.stops.report(k.total.worked),
		unworked: k.unworked.freeze(), speculated: k.speculated.freeze(), arms: k.arms,
	}
	if f.recent.add(&k.was); k.was.requests > 0 {
		f.since = f.since.Add(-k.cfg.Window)
	}
	for i := range f.arms {
		f.arms[i].latency = *k.arms[i].latency.freeze()
	}
	for _, m := range k.order {
		c := *m
		c.latency = *m.latency.freeze()
		c.now.add(&m.was)
		f.methods = append(f.methods, c)
	}
	return f
}

func (k *kind) report(r *Report) RequestReport {
	f := k.freeze(r.At)
	all := merged(f.observed, f.unworked, f.speculated)
	q := RequestReport{
		Name: f.name, Requests: f.total.requests, Failed: f.total.failed, Latency: all.latency(),
		Foreseen: f.foreseen(f.without, f.total.saved, f.total.extra),
		Realised: f.realised(), Recent: f.recently(r.At), Methods: []MethodReport{},
	}
	if f.ifReads.count() > 0 && f.total.readsSaved > f.total.saved {
		reads := f.foreseen(f.ifReads, f.total.readsSaved, f.total.readsExtra)
		reads.Now, reads.Requests = q.Foreseen.Now, f.ifReads.count()
		q.IfReads = &reads
	}
	// What is nearly the same is not worth a line.
	const tells = 0.05
	differs := (f.total.saved - f.total.plainSaved).Abs()
	if f.ifPlain.count() > 0 && differs > time.Duration(f.total.worked)*k.cfg.MinSaving &&
		float64(differs) > tells*float64(f.total.saved.Abs()) {
		plain := f.foreseen(f.ifPlain, f.total.plainSaved, f.total.plainExtra)
		plain.Now, plain.Requests = q.Foreseen.Now, f.ifPlain.count()
		q.IfPlain = &plain
	}
	for _, s := range f.stops {
		if s.WaitMS >= milliseconds(k.cfg.MinSaving) {
			q.Stops = append(q.Stops, s)
		}
	}
	for i := range f.methods {
		q.Methods = append(q.Methods, f.method(&f.methods[i], k.cfg, r))
	}
	slices.SortStableFunc(q.Methods, func(a, b MethodReport) int {
		return cmp.Or(cmp.Compare(max(b.SavedMS, b.SavedAloneMS), max(a.SavedMS, a.SavedAloneMS)),
			cmp.Compare(b.GainMS, a.GainMS), cmp.Compare(a.Name, b.Name))
	})
	if q.Realised != nil {
		q.Realised.Untaken = f.untaken(r.Status)
	}
	q.Canary = f.canary(r.Status)
	q.Summary = q.summary(r.Status != nil && r.Status.Killed)
	return q
}

// foreseen summarises the requests that were worked out.
func (f *frozen) foreseen(then *histogram, saved time.Duration, extra int64) Foreseen {
	out := Foreseen{
		Requests: f.total.worked, Skipped: f.total.skipped, Beside: f.total.beside, Now: f.observed.latency(),
		Then:    then.latency(),
		SavedMS: per(milliseconds(saved), f.total.worked), ExtraLoad: per(float64(extra), f.total.calls),
	}
	out.SavedP50MS = out.Now.P50MS - out.Then.P50MS
	return out
}

func (f *frozen) realised() *Realised {
	t := &f.total
	if t.speculated == 0 {
		return nil
	}
	return &Realised{
		Requests: t.speculated, Latency: f.speculated.latency(), Tasks: t.tasks,
		SavedMS: per(milliseconds(t.taskSaved), t.speculated), WastedCalls: t.wasted,
		ExtraLoad: per(float64(t.wasted), t.callsOfSpeculation),
	}
}

func (f *frozen) recently(now time.Time) Recent {
	t := &f.recent
	return Recent{
		Seconds: max(now.Sub(f.since), 0).Seconds(), Requests: t.requests, Failed: t.failed,
		MeanMS: per(milliseconds(t.duration), t.requests), SavedMS: per(milliseconds(t.saved), t.worked),
		ExtraLoad: per(float64(t.extra), t.calls),
	}
}

func (f *frozen) canary(status *control.Status) *Canary {
	off, on := &f.arms[0], &f.arms[1]
	if off.n+on.n == 0 {
		return nil
	}
	c := &Canary{On: on.report(), Off: off.report()}
	if status != nil && c.source() != byCanary {
		c.Left = status.ControlShare
	}
	if d, ok := welch(on.moments, off.moments); ok {
		c.MeanMS = &d
	}
	if d, ok := medians(&on.latency, &off.latency); ok {
		c.P50MS = &d
	}
	if on.n > 0 && off.n > 0 {
		d := newcombe(c.On.FailedShare, c.Off.FailedShare)
		c.FailedShare = &d
	}
	if c.Summary = c.summary(); !c.tells() {
		c.MeanMS, c.P50MS, c.FailedShare = nil, nil, nil
	}
	return c
}

func (a *arm) report() Arm {
	return Arm{Requests: int64(a.n), Canary: a.canary, Failed: a.failed, FailedShare: wilson(float64(a.failed), a.n),
		Latency: a.latency.latency()}
}

// method reports on one method.
func (f *frozen) method(m *method, cfg *Config, r *Report) MethodReport {
	s := &m.total
	hit := wilson(float64(s.right), float64(s.guessed))
	out := MethodReport{
		Name: m.name, Effect: m.effect.String(), Calls: s.calls, CallsPerRequest: per(float64(s.calls), f.total.requests),
		Failed: s.failed, Asked: s.asked, Guessed: s.guessed, Right: s.right, HitRate: hit.Value, HitRateLow: hit.Low,
		HitRateHigh:   hit.High,
		RecentHitRate: per(float64(m.now.right), m.now.guessed), RecentGuessed: m.now.guessed, Latency: m.latency.latency(),
		SavedAloneMS: per(s.alone, f.total.worked), SavedMS: per(s.saved, f.total.worked),
		ExtraLoad: per(s.aloneExtra, f.total.calls), BreakEven: s.breakEven(),
	}
	if s.sharedGuessed > 0 && !m.predicted {
		out.SharedHitRate, out.SharedGuessed = per(float64(s.sharedRight), s.sharedGuessed), s.sharedGuessed
		out.SharedSavedMS = per(s.sharedSaved, f.total.worked)
	}
	if s.workedGuessed > 0 {
		out.GainMS, out.CostMS = s.gainOfRight()/s.workedGuessed, s.cost/s.workedGuessed
	}
	j := judge{MethodReport: &out, method: m, cfg: cfg, budget: r.Budget, killed: r.Status != nil && r.Status.Killed,
		requests: f.total.requests, speculated: f.total.speculated}
	if r.Status != nil {
		j.left = r.Status.ControlShare
	}
	j.stats, j.fuse = out.site(r.Status)
	j.judge()
	return out
}

// call site takes over what the status says of the method, and returns what its call sites counted.
func (m *MethodReport) site(status *control.Status) (stats control.CallSiteStats, fuse *control.CallSiteStatus) {
	if status == nil {
		return stats, nil
	}
	for i := range status.CallSites {
		s := &status.CallSites[i]
		if s.Name != m.Name {
			continue
		}
		switch mode := s.Mode.String(); m.Mode {
		case "":
			m.Mode, m.Share, m.State = mode, s.Share, s.State.String()
		case mode:
		default:
			m.Mode, m.Share = "mixed", 0
		}
		if fuse == nil || cmp.Or(cmp.Compare(urgency(s.State), urgency(fuse.State)), cmp.Compare(s.Judged, fuse.Judged)) > 0 {
			fuse = s
		}
		m.Predictors = max(m.Predictors, s.Predictors)
		stats.Calls += s.Stats.Calls
		stats.Predicted += s.Stats.Predicted
		stats.Refused += s.Stats.Refused
		if stats.Limited += s.Stats.Limited; s.Stats.LimitedBy != "" {
			stats.LimitedBy = s.Stats.LimitedBy
		}
		stats.Right += s.Stats.Right
		stats.Wrong += s.Stats.Wrong
		stats.SavedNanos += s.Stats.SavedNanos
		stats.WastedNanos += s.Stats.WastedNanos
	}
	if fuse != nil {
		m.State, m.Reason = fuse.State.String(), fuse.Reason
	}
	return stats, fuse
}

// urgency orders the states of a method's call sites: one that has tripped says most, then one that
// is tried again.
func urgency(s control.CallSiteState) int {
	switch s {
	case control.StateTripped:
		return 2
	case control.StateProbing:
		return 1
	}
	return 0
}

// add adds the sums that Recent and totals need.
func (s *kindSums) add(o *kindSums) {
	s.requests += o.requests
	s.failed += o.failed
	s.duration += o.duration
	s.worked += o.worked
	s.skipped += o.skipped
	s.calls += o.calls
	s.extra += o.extra
	s.saved += o.saved
}

// per divides by a count, or returns 0 for none.
func per(sum float64, n int64) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// merged returns the distribution of all values of several frozen ones.
func merged(parts ...*histogram) *histogram {
	out := new(histogram)
	for _, p := range parts {
		if p.h == nil {
			continue
		}
		out.sum += p.sum
		if out.h == nil {
			out.h = p.h.Clone()
		} else {
			out.h.Merge(p.h)
		}
	}
	return out
}

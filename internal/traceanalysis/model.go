package traceanalysis

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/critpath"
)

// model is an entry being worked out.
type model struct {
	*Entry
	options *Options
	names   []string
	sample  []request
	paths   []*critpath.Path
	effects map[nameID]Effect
}

// newModel finds what requests wait for.
func (c *Collector) newModel(key entryKey, e *entry) *model {
	m := &model{
		Entry: &Entry{
			Service: c.names.names[key.service], Method: c.names.names[key.method], Requests: e.requests, Sampled: len(e.sample),
		},
		options: &c.options, names: c.names.names, sample: e.sample, effects: make(map[nameID]Effect),
	}
	var took []weighed
	for i := range m.sample {
		path := m.path(&m.sample[i])
		m.paths = append(m.paths, path)
		took = append(took, weighed{millis(path.Duration()), 1})
		calls := path.Request().Calls
		m.CallsPerRequest += float64(len(calls)) / float64(m.Sampled)
		for _, i := range path.Critical() {
			m.Waits += 1 / float64(m.Sampled)
			m.WaitMS += millis(calls[i].Duration()) / float64(m.Sampled)
		}
	}
	m.Took = durationOf(took)
	m.OwnMS = max(0, m.Took.MeanMS-m.WaitMS)
	return m
}

func (m *model) path(r *request) *critpath.Path {
	calls := make([]critpath.Call, len(r.calls))
	for i, c := range r.calls {
		effect, ok := m.effects[c.method]
		if !ok {
			effect = m.options.effectOf(m.names[c.method])
			m.effects[c.method] = effect
		}
		calls[i] = critpath.Call{Method: m.names[c.method], Start: c.start, End: c.end, Pure: effect.Pure}
	}
	path, err := critpath.New(critpath.Request{End: r.duration, Calls: calls})
	if err != nil {
		panic(err) // addCall lets no such request through
	}
	return path
}

// work fills in all that newModel did not.
func (m *model) work() {
	m.findChains()
	m.findCalls()
	modelled := m.affordable(rateWork, len(m.paths))
	m.Modelled = len(modelled)
	before := m.expect(modelled, nil, 0)
	reads := func(c critpath.Call) bool { return c.Pure }
	for _, p := range hitRates() {
		x := m.expect(modelled, reads, p)
		m.Rates = append(m.Rates, Rate{p, x.took, saved(before, x), x.extra})
	}
	m.choose(modelled, before)
}

// callSum is a method's calls added up.
type callSum struct {
	method          nameID
	took            []weighed
	failed, servers int
	server          time.Duration
	wait            time.Duration
}

func (m *model) findCalls() {
	sums := make(map[nameID]*callSum)
	var order []*callSum
	for at, path := range m.paths {
		r := &m.sample[at]
		for _, c := range r.calls {
			sum := sums[c.method]
			if sum == nil {
				sum = &callSum{method: c.method}
				sums[c.method] = sum
				order = append(order, sum)
			}
			sum.took = append(sum.took, weighed{millis(c.end - c.start), 1})
			if c.failed {
				sum.failed++
			}
			if c.server >= 0 {
				sum.servers++
				sum.server += c.server
			}
		}
		for _, i := range path.Critical() {
			sums[r.calls[i].method].wait += r.calls[i].end - r.calls[i].start
		}
	}
	n := float64(m.Sampled)
	for _, sum := range order {
		c := Call{
			Method: m.names[sum.method], Effect: m.effects[sum.method], PerRequest: float64(len(sum.took)) / n,
			Took: durationOf(sum.took), Failed: float64(sum.failed) / float64(len(sum.took)), WaitMS: millis(sum.wait) / n,
		}
		if sum.servers > 0 {
			server := millis(sum.server) / float64(sum.servers)
			c.ServerMS = &server
		}
		if m.Took.MeanMS > 0 {
			c.WaitShare = c.WaitMS / m.Took.MeanMS
		}
		if c.Effect.Pure {
			c.Alone = m.alone(c.Method)
		}
		m.Calls = append(m.Calls, c)
	}
	slices.SortFunc(m.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.WaitMS, a.WaitMS), cmp.Compare(a.Method, b.Method))
	})
}

// alone finds what predicting one method does.
func (m *model) alone(method string) *Alone {
	x := new(Alone)
	n := float64(m.Sampled)
	for _, path := range m.paths {
		calls := path.Request().Calls
		replay := func(outcome critpath.Outcome) critpath.Result {
			return path.Replay(func(i int) critpath.Outcome {
				if calls[i].Method == method {
					return outcome
				}
				return critpath.Unpredicted
			})
		}
		x.SavedMS += millis(path.Duration()-replay(critpath.Right).End) / n
		wrong := replay(critpath.Wrong)
		x.VainCalls += float64(wrong.Extra) / n
		x.VainMS += millis(wrong.ExtraTime) / n
	}
	if x.SavedMS > 0 {
		cost := *m.options.LoadCost * x.VainMS
		even := cost / (x.SavedMS + cost)
		x.BreakEven = &even
	}
	return x
}

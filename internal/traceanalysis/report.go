package traceanalysis

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Report is what was found. Durations are in milliseconds, shares between 0 and 1.
type Report struct {
	Spans  int `json:"spans"`
	Traces int `json:"traces"`
	// WithoutCalls is how many of the requests make no call.
	Requests     int      `json:"requests"`
	WithoutCalls int      `json:"requests_without_calls"`
	LeftOut      LeftOut  `json:"left_out"`
	HitRate      float64  `json:"hit_rate"`
	LoadCost     float64  `json:"load_cost"`
	Entries      []*Entry `json:"entries"` // those whose requests wait longest in all first
	// Others is how many more kinds of request make calls: fewer were asked for.
	Others int `json:"other_entries"`
}

// Entry is one kind of request: a service and the method that was called. All but Requests is of
// Sampled of them.
type Entry struct {
	Service  string   `json:"service"`
	Method   string   `json:"method"`
	Requests int      `json:"requests"`
	Sampled  int      `json:"sampled"`
	Took     Duration `json:"took"`
	// WaitMS is how long the critical path waits for calls, and OwnMS the rest of the mean: the
	// program's own time.
	WaitMS float64 `json:"waits_ms"`
	OwnMS  float64 `json:"own_ms"`
	// CallsPerRequest is the mean number of calls, Waits that of those on the critical path.
	CallsPerRequest float64 `json:"calls_per_request"`
	Waits           float64 `json:"waits_one_after_the_other"`
	// Chains are the most frequent orders of calls. OtherChains is how many more there are.
	Chains      []Chain `json:"chains"`
	OtherChains int     `json:"other_chains"`
	Calls       []Call  `json:"calls"` // those that are waited for longest first
	// Modelled is of how many of the sampled requests Rates and the choices are: fewer if requests
	// have many calls.
	Modelled int    `json:"modelled"`
	Rates    []Rate `json:"rates"` // all reads predicted
	// Single and Together are the method, and the methods, that are best to predict at the report's
	// hit rate by what is saved less the load's cost; nil if none is worth it.
	Single   *Choice   `json:"best_single,omitempty"`
	Together *Choice   `json:"best_together,omitempty"`
	Timeline *Timeline `json:"timeline,omitempty"`
}

// Duration is a distribution.
type Duration struct {
	MeanMS float64 `json:"mean_ms"`
	P50MS  float64 `json:"p50_ms"`
	P95MS  float64 `json:"p95_ms"`
}

// Chain is an order of calls, the stages one after the other.
type Chain struct {
	Stages []Stage `json:"stages"`
	Share  float64 `json:"share"`
	MeanMS float64 `json:"mean_ms"`
}

// Stage is calls that were waiting for the same answer.
type Stage struct {
	// Methods are those that are called, with ×2, ×3 or ×many for one that is called more than
	// once.
	Methods []string `json:"methods"`
	// Repeated stages beside each other are a loop: they come three times or more.
	Repeated bool `json:"repeated,omitempty"`
}

// Call is what is known of the calls of one method that requests of an entry make.
type Call struct {
	Method     string   `json:"method"`
	Effect     Effect   `json:"effect"`
	PerRequest float64  `json:"per_request"`
	Took       Duration `json:"took"`
	// ServerMS is how long the server works for one, the rest is the network's and the client's;
	// nil if no server's span is in the input.
	ServerMS *float64 `json:"server_ms,omitempty"`
	Failed   float64  `json:"failed"`
	// WaitMS and WaitShare are what requests wait for it on the critical path.
	WaitMS    float64 `json:"waits_ms"`
	WaitShare float64 `json:"waits_share"`
	Alone     *Alone  `json:"alone,omitempty"` // nil if it may have effects
}

// Alone is what predicting one method, and no other, does to a request.
type Alone struct {
	SavedMS   float64 `json:"saved_ms"`   // if all predictions are right
	VainCalls float64 `json:"vain_calls"` // if all are wrong
	VainMS    float64 `json:"vain_ms"`    // how long these take
	// BreakEven is the hit rate p above which p SavedMS > (1-p) load cost VainMS; nil if nothing is
	// saved.
	BreakEven *float64 `json:"break_even"`
}

// Rate is what is expected if predictions are right at that rate, independently of each other.
type Rate struct {
	HitRate float64  `json:"hit_rate"`
	Took    Duration `json:"took"`
	Saved   float64  `json:"saved"`      // of the mean
	Extra   float64  `json:"extra_load"` // calls made in vain, per call
}

// Choice is some methods to predict, and what is expected then.
type Choice struct {
	Methods []string `json:"methods"`
	MeanMS  float64  `json:"mean_ms"`
	Saved   float64  `json:"saved"`
	Extra   float64  `json:"extra_load"`
}

// Timeline is a typical request, as it was and as it would have been with every read predicted
// rightly: that of median length among those with the most frequent chain.
type Timeline struct {
	BeforeMS float64 `json:"before_ms"`
	AfterMS  float64 `json:"after_ms"`
	Bars     []Bar   `json:"calls"`
}

// Bar is a call of a timeline, in milliseconds since the request began.
type Bar struct {
	Method    string  `json:"method"`
	Predicted bool    `json:"predicted"` // otherwise it may have effects, and waits for what it stands on
	Critical  bool    `json:"critical"`  // the request waited for it, before
	From      float64 `json:"before_from_ms"`
	To        float64 `json:"before_to_ms"`
	AfterFrom float64 `json:"after_from_ms"`
	AfterTo   float64 `json:"after_to_ms"`
}

// Report takes apart what is left and works out the top entries, or all if top is 0. The collector
// takes nothing more after it.
func (c *Collector) Report(top int) *Report {
	c.finish()
	r := &Report{
		Spans: c.spans, Traces: c.whole, Requests: c.requests, WithoutCalls: c.rest, LeftOut: c.out,
		HitRate: c.options.HitRate, LoadCost: *c.options.LoadCost,
		Entries: []*Entry{},
	}
	var models []*model
	for _, key := range slices.SortedFunc(maps.Keys(c.entries), func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(c.names.names[a.service], c.names.names[b.service]),
			cmp.Compare(c.names.names[a.method], c.names.names[b.method]))
	}) {
		e := c.entries[key]
		if e.calls == 0 || !c.wanted(key) {
			continue
		}
		models = append(models, c.newModel(key, e))
	}
	slices.SortStableFunc(models, func(a, b *model) int {
		return cmp.Compare(b.WaitMS*float64(b.Requests), a.WaitMS*float64(a.Requests))
	})
	if top > 0 && len(models) > top {
		r.Others = len(models) - top
		models = models[:top]
	}
	for _, m := range models {
		m.work()
		r.Entries = append(r.Entries, m.Entry)
	}
	return r
}

// wanted reports whether the pattern for entries fits the method, or the service and the method.
func (c *Collector) wanted(key entryKey) bool {
	pattern, method := c.options.Entry, c.names.names[key.method]
	return pattern == "" || matches(pattern, method) || matches(pattern, c.names.names[key.service]+": "+method)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

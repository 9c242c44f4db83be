package control

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// A call site's fuse looks at its guesses. Whether requests are any the worse for
// speculation shows only in the requests: which of them fail, and how long they
// take. So the Control compares those with speculation to those without, whose
// side was drawn by lot: the two sides of a canary, and in mode on the small share
// that is left without, see Config.ControlShare.
//
// The comparison goes on as long as the service, so that a test at each moment
// would one day find a difference where there is none. This one may be looked at
// after every request: given whether a request failed, or was slower than most, the
// side that it is on is as probable as its lot, if speculation changes nothing.
// Against that stands that failing, or being slow, is more probable with
// speculation by some factor; the ratio of the two probabilities, multiplied up over
// all requests and averaged over some factors, reaches 1/alpha with a probability of
// at most alpha, ever (Ville's inequality). That holds whatever failures depend on,
// bursts and outages included, for lots do not.
const (
	// harmAlpha is the probability of a false alarm, per kind of request and
	// comparison, over all time.
	harmAlpha = 0.001
	// harmKinds bounds the kinds of request that are told apart.
	harmKinds = 64
	// harmLeast is which part of the time without speculation a request must take
	// longer to be called slower.
	harmLeast = 0.01
	// controlAfter is how many requests begin before some in mode on are left without.
	controlAfter = 1000
)

// harm is what is known of one kind of request. Under the Control's harmMu.
type harm struct {
	off, on side
	failed  evidence
	slower  evidence // than half of those without speculation
	slow    evidence // than 19 of 20 of them
	median  threshold
	tail    threshold
	sites   []string // that were speculated in them
}

// side is the requests with speculation or without: times in seconds.
type side struct{ n, failed, sum, squares float64 }

func (s *side) add(took time.Duration, failed bool) {
	s.n++
	if failed {
		s.failed++
	}
	s.sum += took.Seconds()
	s.squares += took.Seconds() * took.Seconds()
}

func (s *side) mean() float64 { return s.sum / s.n }

// variance returns that of the mean.
func (s *side) variance() float64 { return max(s.squares/s.n-s.mean()*s.mean(), 0) / s.n }

// evidence is how much more probable what was seen is if something is more
// probable with speculation, by one of several factors in its odds: logarithms.
type evidence [4]float64

// add takes a request in: which side it is on, how probable that was, whether it
// happened, and how often it does without speculation.
func (e *evidence) add(on bool, drawn float64, happened bool, usual float64) {
	for i, times := range []float64{1.25, 1.5, 2, 4} {
		more := times * usual / (1 - usual + times*usual)
		with, without := more, usual
		if !happened {
			with, without = 1-more, 1-usual
		}
		if both := drawn*with + (1-drawn)*without; on {
			e[i] += math.Log(with / both)
		} else {
			e[i] += math.Log(without / both)
		}
	}
}

// found reports whether it is enough.
func (e *evidence) found() bool {
	mean := 0.0
	for _, v := range e {
		mean += math.Exp(min(v, 100)) / float64(len(e))
	}
	return mean >= 1/harmAlpha
}

// threshold follows a quantile of times.
type threshold struct{ at, share float64 }

// add moves it, a little, to where a share of the times is below.
func (t *threshold) add(took float64) {
	const step = 0.02
	switch {
	case t.at == 0:
		t.at = took
	case took > t.at:
		t.at *= 1 + step*t.share
	default:
		t.at *= 1 - step*(1-t.share)
	}
}

// weigh compares a request that has ended with others of its kind, and trips the
// call sites that were speculated in them if these do harm.
func (c *Control) weigh(r *RequestRecord, drawn float64) {
	if r.Arm == ArmNone || drawn <= 0 || drawn >= 1 || c.cfg.Budget < 0 {
		return
	}
	c.harmMu.Lock()
	h := c.harms[r.Name]
	if h == nil {
		if len(c.harms) >= harmKinds {
			c.harmMu.Unlock()
			return
		}
		if c.harms == nil {
			c.harms = make(map[string]*harm)
		}
		h = &harm{median: threshold{share: 0.5}, tail: threshold{share: 0.95}}
		c.harms[r.Name] = h
	}
	reason := h.add(r, drawn)
	sites := h.sites
	if reason != "" {
		delete(c.harms, r.Name) // it begins anew once they are tried again
	}
	c.harmMu.Unlock()
	if reason != "" {
		c.tripAll(sites, r.Name+" "+reason)
	}
}

// add returns what harm there is, if there is any.
func (h *harm) add(r *RequestRecord, drawn float64) (reason string) {
	on, took := r.Arm == ArmOn, r.Duration.Seconds()
	if on {
		for i := range r.Calls {
			if call := &r.Calls[i]; call.Mode == ModeOn && !slices.Contains(h.sites, call.CallSite) && len(h.sites) < harmKinds {
				h.sites = append(h.sites, call.CallSite)
			}
		}
	}
	// How often it happens is what was known before: never nothing, never all.
	h.failed.add(on, drawn, r.Failed, (h.off.failed+0.5)/(h.off.n+1))
	if h.median.at > 0 && !r.Failed {
		h.slower.add(on, drawn, took > h.median.at, 0.5)
		h.slow.add(on, drawn, took > h.tail.at, 0.05)
	}
	if !on && !r.Failed {
		h.median.add(took)
		h.tail.add(took)
	}
	if on {
		h.on.add(r.Duration, r.Failed)
	} else {
		h.off.add(r.Duration, r.Failed)
	}
	if h.on.n < enough || h.off.n < enough || len(h.sites) == 0 {
		return ""
	}
	return h.found()
}

// found puts the harm into words, once there is evidence enough and the interval of
// the difference tells it, too.
func (h *harm) found() string {
	of := fmt.Sprintf("of %.0f requests with and %.0f without", h.on.n, h.off.n)
	with, without := h.on.failed/h.on.n, h.off.failed/h.off.n
	if low, high := newcombe(with, h.on.n, without, h.off.n); h.failed.found() && low > 0 {
		return fmt.Sprintf("fails more often with speculation: %.2g %% against %.2g %% (difference %.2g to %.2g %%), %s",
			100*with, 100*without, 100*low, 100*high, of)
	}
	d := h.on.mean() - h.off.mean()
	half := 1.96 * math.Sqrt(h.on.variance()+h.off.variance())
	if (h.slower.found() || h.slow.found()) && d > harmLeast*h.off.mean() && d > half {
		return fmt.Sprintf("is slower with speculation: by %.3g ms on average (%.3g to %.3g ms), %s", 1e3*d, 1e3*(d-half),
			1e3*(d+half), of)
	}
	return ""
}

// newcombe returns the 95 % interval of the difference of two shares, each seen in
// so many trials: his method 10, from Wilson's intervals.
func newcombe(a, n, b, m float64) (low, high float64) {
	lower := func(share, n float64) float64 { return 1 - wilsonUpper(1-share, n) }
	d := a - b
	return d - math.Hypot(a-lower(a, n), wilsonUpper(b, m)-b), d + math.Hypot(wilsonUpper(a, n)-a, b-lower(b, m))
}

// tripAll trips the call sites of these names that speculate.
func (c *Control) tripAll(names []string, reason string) {
	var events []news
	now := time.Now()
	c.mu.Lock()
	for _, s := range c.sites {
		set := s.board.now.Load()
		if slices.Contains(names, s.cfg.Name) && (set.mode == ModeOn || set.mode == ModeCanary) &&
			CallSiteState(s.trip.state.Load()) != StateTripped {
			events = append(events, s.open(now, s.trip.shown(s.trip.at(set.mode)), reason))
		}
	}
	c.mu.Unlock()
	c.tell(events)
}

func (c *Control) tell(events []news) {
	for _, e := range events {
		c.cfg.Logger.Log(context.Background(), e.level, e.text, e.args...)
	}
}

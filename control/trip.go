package control

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"
)

// CallSiteState is what experience with a call site's predictions has come to.
type CallSiteState uint32

const (
	// StateLearning: too few predictions are judged to tell.
	StateLearning CallSiteState = iota
	// StateActive: they pay.
	StateActive
	// StateTripped: they do not, and for a while the call site only observes.
	StateTripped
	// StateProbing: a few are tried after that.
	StateProbing
)

// String returns the name that reports use.
func (s CallSiteState) String() string {
	return [...]string{"learning", "active", "tripped", "probing"}[s]
}

// MarshalText implements encoding.TextMarshaler.
func (s CallSiteState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *CallSiteState) UnmarshalText(text []byte) error {
	for i := StateLearning; i <= StateProbing; i++ {
		if i.String() == string(text) {
			*s = i
			return nil
		}
	}
	return fmt.Errorf("%q is no state of a site", text)
}

const (
	// judgeEvery is the least time between two judgements.
	judgeEvery = 100 * time.Millisecond
	// enough is how many predictions must be judged before a call site is.
	enough = 20
	// wastedEnough is how many wasted calls make a load worth looking at.
	wastedEnough = 5
	// leastBreakEven is the hit rate below which predictions never pay: code that
	// runs in vain costs something, too, even if it sends nothing.
	leastBreakEven = 0.05
	// guessCost is about what a right guess costs in processor time, see BenchmarkClientAlone in
	// specgrpc. One that saves less is not made.
	guessCost = 15 * time.Microsecond
	// guessWaits is how many goroutines a right guess has woken that plain code does not need. On a
	// busy machine each waits for a processor, which costs more than the processor time. And there
	// what a guess seems to save is mostly such a wait, of the code that went on.
	guessWaits = 2
	// busyWait is what goroutines wait on a busy machine at least, and paidLeast the share of the
	// right guesses that must save more than they cost there: a few that seem to save very much did
	// nothing but wait.
	busyWait  = 100 * time.Microsecond
	paidLeast = 0.25
	// probeAgain is how long a probing call site waits for the results of what it tried.
	probeAgain = 10 * time.Second
	// steady is how many windows a call site must have paid for its next trip to be as
	// short as the first.
	steady = 4
	// atLeast is how long a call site that pays again is in use before its hit rate is
	// judged anew: luck may have brought it there, and one word at a time is enough.
	atLeast = 5 * time.Second
	// triedMost is how many predictions of a probing call site are judged at most before
	// it is decided whether it pays.
	triedMost = 200
	// longestRetry is how many times longer than at first a call site may stay tripped.
	longestRetry = 32
)

// trip is a call site's fuse.
type trip struct {
	state  atomic.Uint32
	until  atomic.Int64 // while tripped, Unix nanoseconds
	probes atomic.Int64 // predictions that may still be tried while probing
	idle   atomic.Bool  // it tripped because its right predictions save nothing
	asked  atomic.Int64 // see samples

	// Under the Control's mu.
	reason string
	retry  time.Duration
	since  time.Time // it pays
	again  bool      // it does so after it had tripped
	seen   tally     // of the counters, when they were last looked at
	window tally     // of what happened lately
	probed tally     // of what was tried while probing
	last   tally     // that the call site tripped with
}

// at returns the call site's state in a mode. One that uses no predictions has none to judge; what
// was found before waits until they are used again.
func (t *trip) at(m Mode) CallSiteState {
	if !m.uses() {
		return StateLearning
	}
	return CallSiteState(t.state.Load())
}

// shown returns what a state comes from. Under the Control's mu.
func (t *trip) shown(state CallSiteState) *tally {
	switch state {
	case StateTripped:
		return &t.last
	case StateProbing:
		return &t.probed
	}
	return &t.window
}

// tally is what a call site is judged by: times are in seconds.
type tally struct {
	calls, right, paid, wrong, misled, saved, wasted, lost float64
}

func (t tally) minus(o tally) tally {
	return t.plus(o, 1, -1)
}

// plus returns the sum of so much of the one and so much of the other.
func (t tally) plus(o tally, f, g float64) tally {
	return tally{
		f*t.calls + g*o.calls, f*t.right + g*o.right, f*t.paid + g*o.paid, f*t.wrong + g*o.wrong, f*t.misled + g*o.misled,
		f*t.saved + g*o.saved, f*t.wasted + g*o.wasted, f*t.lost + g*o.lost,
	}
}

// misses returns how often predictions were wrong: that no run went on with them,
// or that one did although another prediction of the call was right, count too.
func (t *tally) misses() float64 { return max(t.wrong, t.misled) }

// judged returns how many predictions there is a verdict on.
func (t *tally) judged() float64 { return t.right + t.misses() }

func (t *tally) hitRate() float64 {
	if t.judged() <= 0 {
		return 0
	}
	return t.right / t.judged()
}

// breakEven returns the hit rate above which predictions pay: what a right one
// saves, as often as it is right, against what a wrong one wastes. A second of
// calls made in vain weighs as much as a second saved.
func (t *tally) breakEven() float64 {
	cost := t.cost()
	if cost <= 0 {
		return leastBreakEven
	}
	return max(leastBreakEven, cost/(cost+t.gain()))
}

// gain returns what a right prediction saved, cost what a wrong one wasted.
func (t *tally) gain() float64 {
	if t.right <= 0 {
		return 0
	}
	return t.saved / t.right
}

// idle reports whether the call site's right predictions save less than they cost: hardly anything
// is done between them and the answers.
func (s *CallSite) idle(seen *tally) bool {
	if seen.right <= 0 {
		return false
	}
	return seen.gain() < s.guessCost().Seconds() || s.quickest.queue.wait() >= busyWait && seen.paid < paidLeast*seen.right
}

// guessCost returns what a right prediction costs now.
func (s *CallSite) guessCost() time.Duration { return guessCost + guessWaits*s.quickest.queue.wait() }

func (t *tally) cost() float64 {
	if t.misses() <= 0 {
		return 0
	}
	return t.lost / t.misses()
}

// tally returns the counters.
func (s *CallSite) tally() tally {
	c := &s.stats
	return tally{
		calls: float64(c.Sent.Load() + c.Plain.Load()), right: float64(c.Right.Load()), paid: float64(c.Paid.Load()),
		wrong: float64(c.Wrong.Load()), misled: float64(c.Misled.Load()),
		saved: time.Duration(c.SavedNanos.Load()).Seconds(), wasted: float64(c.Wasted.Load()),
		lost: time.Duration(c.WastedNanos.Load()).Seconds(),
	}
}

// holds reports whether the call site takes no predictions. The first that asks after
// the time is over makes it try some.
func (t *trip) holds() bool {
	switch CallSiteState(t.state.Load()) {
	case StateTripped:
		if time.Now().UnixNano() < t.until.Load() {
			return true
		}
		if t.state.CompareAndSwap(uint32(StateTripped), uint32(StateProbing)) {
			t.probes.Store(enough)
		}
		return false
	case StateProbing:
		// What was tried and never came to an end, such as calls that were
		// cancelled, is tried again after a while.
		left, until := t.probes.Load(), t.until.Load()
		if now := time.Now().UnixNano(); left <= 0 && now-until > int64(probeAgain) && t.until.CompareAndSwap(until, now) {
			t.probes.Store(enough)
			return false
		}
		return left <= 0
	default:
		return false
	}
}

// probe counts a call for which a probing call site has predictions: its own, or the first of its
// server.
func (t *trip) probe() {
	if CallSiteState(t.state.Load()) == StateProbing {
		t.probes.Add(-1)
	}
}

// due reports whether it is time to look at all call sites.
func (c *Control) due() bool { return time.Now().UnixNano()-c.judged.Load() >= int64(judgeEvery) }

// judge looks at all call sites, if it is time. It is called when something happened
// that may change what they are worth.
func (c *Control) judge() {
	now, last := time.Now(), c.judged.Load()
	if !c.due() || !c.judged.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	c.tell(c.judgeAll(now, last))
}

// news is something for the logger, which is told without locks held.
type news struct {
	level slog.Level
	text  string
	args  []any
}

func (c *Control) judgeAll(now time.Time, last int64) (events []news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	past := 0.0 // the share of what was in the window that still is
	if last != 0 {
		past = math.Exp(-float64(now.UnixNano()-last) / float64(c.cfg.Window))
	}
	c.useful *= past
	wasted := 0.0
	var worst *CallSite
	for _, s := range c.sites {
		t := &s.trip
		total := s.tally()
		fresh := total.minus(t.seen)
		t.seen = total
		t.window = t.window.plus(fresh, past, 1)
		if CallSiteState(t.state.Load()) == StateProbing {
			t.probed = t.probed.plus(fresh, 1, 1)
		}
		c.useful += fresh.calls - fresh.wasted // a call site's predictions may waste more calls of others than it has
		if CallSiteState(t.state.Load()) == StateTripped || !s.board.now.Load().mode.uses() {
			continue // what it had under way: it does no more
		}
		wasted += t.window.wasted
		if t.window.wasted > 0 && (worst == nil || t.window.wasted > worst.trip.window.wasted) {
			worst = s
		}
	}
	c.useful = max(c.useful, 0)
	if c.cfg.Budget < 0 {
		return nil
	}
	for _, s := range c.sites {
		events = append(events, s.judge(now)...)
	}
	if wasted >= wastedEnough && wasted > c.cfg.Budget*c.useful && c.useful >= enough && worst != nil {
		events = append(events, worst.open(now, &worst.trip.window,
			fmt.Sprintf("extra load %.0f %% is above the budget of %.0f %%, and this site wastes most", 100*wasted/c.useful,
				100*c.cfg.Budget)))
	}
	return events
}

// judge decides what the call site's hit rate means. Under the Control's mu.
func (s *CallSite) judge(now time.Time) (events []news) {
	t := &s.trip
	if !s.board.now.Load().mode.uses() {
		return nil
	}
	state := CallSiteState(t.state.Load())
	seen := &t.window
	if state == StateProbing {
		seen = &t.probed
	}
	n := seen.judged()
	if state == StateTripped || n < enough {
		return nil
	}
	least, rate := seen.breakEven(), seen.hitRate()
	below := fmt.Sprintf("hit rate %.0f %% is below the break-even of %.0f %%", 100*rate, 100*least)
	switch {
	case state == StateActive && t.again && now.Sub(t.since) < atLeast:
	case s.idle(seen):
		return s.rest(now, seen)
	case wilsonUpper(rate, n) < least:
		return []news{s.open(now, seen, below)}
	case state == StateLearning:
		t.state.Store(uint32(StateActive))
		t.reason, t.since = "", now
	case state == StateProbing:
		return s.tried(now, seen, below)
	}
	return nil
}

// tried decides about a probing call site that is not surely as bad as before. It pays
// again only if that is as sure, and its load within the budget: else it would trip
// with the next answers. As long as it is neither, more is tried, up to a bound.
// Under the Control's mu.
func (s *CallSite) tried(now time.Time, seen *tally, below string) []news {
	t, c := &s.trip, s.control
	n, rate, least := seen.judged(), seen.hitRate(), seen.breakEven()
	load := seen.wasted / n * min(t.window.calls/max(c.useful, 1), 1)
	switch {
	case 1-wilsonUpper(1-rate, n) > least || n >= triedMost && rate > least:
		if load > c.cfg.Budget {
			return []news{s.open(now, seen, fmt.Sprintf("its wrong guesses add %.0f %% of load, above the budget of %.0f %%",
				100*load, 100*c.cfg.Budget))}
		}
	case n >= triedMost:
		return []news{s.open(now, seen, below)}
	default:
		if t.probes.Load() <= 0 {
			t.probes.Store(enough)
		}
		return nil
	}
	t.state.Store(uint32(StateActive))
	t.idle.Store(false)
	t.window, t.reason, t.since, t.again = *seen, "", now, true // what it pays by
	return []news{{slog.LevelInfo, "foresay: site pays again", []any{"site", s.cfg.Name, "conn", s.conn, "hit_rate", rate,
		"break_even", least}}}
}

// open trips the call site. Under the Control's mu.
func (s *CallSite) open(now time.Time, seen *tally, reason string) news {
	t := &s.trip
	t.last = *seen
	if t.retry == 0 || CallSiteState(t.state.Load()) == StateActive && now.Sub(t.since) > max(steady*s.control.cfg.Window,
		t.retry) {
		t.retry = s.control.cfg.Retry
	} else { // it has not been better for long
		t.retry = min(2*t.retry, longestRetry*s.control.cfg.Retry)
	}
	t.reason, t.window, t.probed = reason, tally{}, tally{}
	t.idle.Store(false)
	t.until.Store(now.Add(t.retry).UnixNano())
	t.state.Store(uint32(StateTripped))
	s.stats.Trips.Add(1)
	return news{slog.LevelWarn, "foresay: site tripped", []any{"site", s.cfg.Name, "conn", s.conn, "reason", reason, "for",
		t.retry}}
}

// rest trips a call site whose right predictions save nothing. Nothing is wrong with them, so that
// it is tried again as soon each time; and that nothing has changed since is no news. Under the
// Control's mu.
func (s *CallSite) rest(now time.Time, seen *tally) []news {
	t := &s.trip
	known := t.idle.Load()
	t.retry = 0
	reason := fmt.Sprintf("saves nothing: hardly any work follows the call before its answer is there (a right guess "+
		"saves %.3g µs and costs about %.3g)", 1e6*seen.gain(), 1e6*s.guessCost().Seconds())
	if seen.gain() >= s.guessCost().Seconds() {
		reason = fmt.Sprintf("saves nothing: goroutines wait for the processors, %.0f µs each, and %.0f %% of the right "+
			"guesses saved more than that costs", 1e6*s.quickest.queue.wait().Seconds(), 100*seen.paid/seen.right)
	}
	e := s.open(now, seen, reason)
	t.idle.Store(true)
	t.retry = 0
	if known {
		s.stats.Trips.Add(-1)
		return nil
	}
	e.level = slog.LevelInfo
	return []news{e}
}

// sampleEvery is how many calls of a call site that saves nothing there are to one for which a
// prediction is still compared: that costs about as much as to make it.
const sampleEvery = 64

// Samples reports whether the prediction of a call that takes none is compared.
func (s *engineCallSite) Samples() bool {
	return !s.trip.idle.Load() || s.trip.asked.Add(1)%sampleEvery == 0
}

// wilsonUpper returns the upper end of the 95 % interval of a share seen in n
// trials, by Wilson's score.
func wilsonUpper(share, n float64) float64 {
	const z = 1.96
	mid := share + z*z/(2*n)
	return (mid + z*math.Sqrt(share*(1-share)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

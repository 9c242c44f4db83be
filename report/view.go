package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// view is a report made ready for drawing. A report may come from anywhere, so
// nothing of it is taken for granted: times are put in order, and references to
// what is not there are kept as numbers.
type view struct {
	report *Report
	end    time.Duration // the time axis is 0 to end; positive
	groups []group
	calls  map[int]*callView // by ID; the first of equal IDs
}

// group is a run with the calls that it was the first to make. run is nil for
// the calls that no run made.
type group struct {
	run   *runView
	calls []*callView
}

type phase uint8

const (
	phaseHeld        phase = iota // of a call: not sent
	phaseSpeculative              // sent for a caller that stands on a guess
	phaseFirm                     // sent for a caller that is right
	phaseComputing                // of a run: its code executes
	phaseWaiting                  // for an answer
	phaseReturned                 // stands on guesses that are open
)

// span is a phase of a call or a run. Spans of one of them join without gaps.
type span struct {
	from, to time.Duration
	phase    phase
}

// verdict is what a call or a run came to.
type verdict uint8

const (
	verdictUnsettled verdict = iota
	verdictAnswered          // not predicted
	verdictFailed
	verdictRight
	verdictWrong
	verdictAbandoned
	verdictConfirmed
	verdictDiscarded
)

// String names the verdict in the words of the legends.
func (v verdict) String() string {
	return [...]string{
		"open", "answered", "failed", "prediction right", "prediction wrong",
		"abandoned", "confirmed", "discarded",
	}[v]
}

type callView struct {
	*Call
	from, to time.Duration
	spans    []span
	verdict  verdict
}

type runView struct {
	*Run
	from, to time.Duration
	spans    []span
	verdict  verdict
}

func newView(r *Report) *view {
	v := &view{report: r, end: max(r.Duration, time.Microsecond), calls: make(map[int]*callView, len(r.Calls))}
	for i := range r.Calls {
		v.end = max(v.end, r.Calls[i].last())
	}
	for i := range r.Runs {
		v.end = max(v.end, r.Runs[i].Started, r.Runs[i].Ended)
	}
	taken := make(map[int]bool)   // by call ID: a run went on with a prediction
	refuted := make(map[int]bool) // by call ID: it discarded a run
	maker := make(map[int]int)    // by call ID, the index of the run
	for i := range r.Runs {
		refuted[r.Runs[i].RefutedBy] = true
		for _, s := range r.Runs[i].Steps {
			taken[s.Call] = taken[s.Call] || s.Prediction >= 0
			if _, known := maker[s.Call]; !known || !s.Adopted {
				maker[s.Call] = i
			}
		}
		v.groups = append(v.groups, group{run: v.run(&r.Runs[i])})
	}
	v.groups = append(v.groups, group{})
	for i := range r.Calls {
		id := r.Calls[i].ID
		c := v.call(&r.Calls[i], callVerdict(&r.Calls[i], taken[id], refuted[id]))
		if v.calls[c.ID] == nil {
			v.calls[c.ID] = c
		}
		g, known := maker[c.ID]
		if !known {
			g = len(r.Runs)
		}
		v.groups[g].calls = append(v.groups[g].calls, c)
	}
	if rest := len(r.Runs); len(v.groups[rest].calls) == 0 {
		v.groups = v.groups[:rest]
	}
	return v
}

// last returns the last time in the call's report.
func (c *Call) last() time.Duration {
	last := max(c.Made, c.Answered, c.Abandoned)
	for _, h := range c.Held {
		last = max(last, h.At)
	}
	for _, s := range c.Sent {
		last = max(last, s.At)
	}
	for _, at := range c.Predicted {
		last = max(last, at)
	}
	return last
}

// call draws a call from when it was made until it was answered or given up.
func (v *view) call(c *Call, came verdict) *callView {
	out := &callView{Call: c, from: max(c.Made, 0), verdict: came}
	switch {
	case c.Answered >= 0:
		out.to = c.Answered
	case c.Abandoned >= 0:
		out.to = c.Abandoned
	default:
		out.to = v.end
	}
	out.to = max(out.from, out.to)
	var changes []span // from is when the phase began
	for _, h := range c.Held {
		changes = append(changes, span{from: h.At, phase: phaseHeld})
	}
	for _, s := range c.Sent {
		p := phaseFirm
		if s.Speculative {
			p = phaseSpeculative
		}
		changes = append(changes, span{from: s.At, phase: p})
	}
	slices.SortStableFunc(changes, func(a, b span) int { return c.order(a, b) })
	for i := range changes {
		if at := &changes[i]; at.phase == phaseSpeculative && c.Confirmed >= 0 && c.Confirmed <= at.from {
			at.phase = phaseFirm
		}
	}
	if c.Confirmed >= 0 {
		i, _ := slices.BinarySearchFunc(changes, c.Confirmed, func(s span, at time.Duration) int {
			if s.from <= at {
				return -1
			}
			return 1
		})
		if i > 0 && changes[i-1].phase == phaseSpeculative {
			changes = slices.Insert(changes, i, span{from: c.Confirmed, phase: phaseFirm})
		}
	}
	first := phaseHeld
	if len(changes) == 0 {
		first = phaseComputing // by the task itself: a future's result
	}
	out.spans = join(out.from, out.to, first, changes)
	return out
}

// order sorts the changes of a call. A call that is held and sent at one
// instant was held last if it was sent again later.
func (c *Call) order(a, b span) int {
	switch {
	case a.from != b.from:
		return cmp.Compare(a.from, b.from)
	case (a.phase == phaseHeld) == (b.phase == phaseHeld):
		return 0
	}
	again := slices.ContainsFunc(c.Sent, func(s Send) bool { return s.At > a.from })
	if (a.phase == phaseHeld) == again {
		return 1
	}
	return -1
}

func callVerdict(c *Call, taken, refuted bool) verdict {
	switch {
	case refuted && c.Match < 0:
		return verdictWrong
	case c.Abandoned >= 0:
		return verdictAbandoned
	case c.Answered < 0:
		return verdictUnsettled
	case c.Match >= 0:
		return verdictRight
	case taken:
		return verdictWrong
	case c.Error != "":
		return verdictFailed
	}
	return verdictAnswered
}

// run draws a run from its start until it was confirmed or discarded.
func (v *view) run(r *Run) *runView {
	out := &runView{Run: r, from: max(r.Started, 0), to: v.end, verdict: verdictUnsettled}
	if r.Ended >= 0 {
		out.to = r.Ended
	}
	out.to = max(out.from, out.to)
	switch r.State {
	case "confirmed":
		out.verdict = verdictConfirmed
	case "discarded":
		out.verdict = verdictDiscarded
	}
	var waits []span
	for _, s := range r.Steps {
		until := s.Resumed
		if until < 0 {
			until = out.to
		}
		if until > s.At {
			waits = append(waits, span{s.At, until, phaseWaiting})
		}
	}
	slices.SortStableFunc(waits, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var changes []span
	busy := time.Duration(math.MinInt64) // some lane waits until then
	for _, w := range waits {
		if w.from > busy && len(changes) > 0 {
			changes = append(changes, span{from: busy, phase: phaseComputing})
		}
		if w.from > busy {
			changes = append(changes, span{from: w.from, phase: phaseWaiting})
		}
		busy = max(busy, w.to)
	}
	if len(changes) > 0 {
		changes = append(changes, span{from: busy, phase: phaseComputing})
	}
	if r.Returned >= 0 {
		changes = slices.DeleteFunc(changes, func(s span) bool { return s.from >= r.Returned })
		changes = append(changes, span{from: r.Returned, phase: phaseReturned})
	}
	out.spans = join(out.from, out.to, phaseComputing, changes)
	return out
}

// join returns the spans between from and to that sorted changes make, of
// which first is the phase before all.
func join(from, to time.Duration, first phase, changes []span) []span {
	spans := []span{{from, to, first}}
	for _, c := range changes {
		at := min(max(c.from, from), to)
		last := &spans[len(spans)-1]
		switch {
		case last.from == at:
			last.phase = c.phase
		case last.phase != c.phase:
			last.to = at
			spans = append(spans, span{at, to, c.phase})
		}
	}
	return spans
}

// cut leaves n rows, a run or a call each, and returns how many it took away.
func (v *view) cut(n int) int {
	hidden := 0
	for i := range v.groups {
		g := &v.groups[i]
		if g.run != nil {
			if n--; n < 0 {
				g.run = nil
				hidden++
			}
		}
		keep := min(len(g.calls), max(n, 0))
		hidden += len(g.calls) - keep
		g.calls = g.calls[:keep]
		n -= keep
	}
	return hidden
}

// fraction returns where on the time axis t lies, from 0 to 1.
func (v *view) fraction(t time.Duration) float64 {
	return min(1, max(0, float64(t)/float64(v.end)))
}

// ticks returns about n round times from 0 to the end of the axis.
func (v *view) ticks(n int) []time.Duration {
	want := float64(v.end) / float64(max(n, 1))
	unit := math.Pow(10, math.Floor(math.Log10(want)))
	step := 10 * unit
	for _, m := range [...]float64{1, 2, 5} {
		if m*unit >= want {
			step = m * unit
			break
		}
	}
	step = max(step, float64(time.Microsecond))
	var out []time.Duration
	for i := 0; float64(i)*step <= float64(v.end) && i <= 2*max(n, 1); i++ {
		out = append(out, time.Duration(float64(i)*step))
	}
	return out
}

// heading sums the report up.
func (v *view) heading() string {
	r := v.report
	name := "task"
	if r.Task != "" {
		name += " " + clean(r.Task)
	}
	outcome := "confirmed"
	if r.Outcome != "confirmed" {
		outcome = "ended without a result"
	}
	return name + ": " + outcome + " after " + millis(r.Duration) + " ms, " +
		count(len(r.Runs), "run") + ", " + count(len(r.Calls), "call")
}

// label names a call as briefly as its call site allows.
func (c *callView) label() string {
	s := strconv.Itoa(c.ID) + " " + shortCallSite(c.CallSite)
	if c.Lane != "" {
		s += " " + clean(c.Lane)
	}
	return s
}

func (c *callView) note() string {
	s := millis(c.to-c.from) + " ms, " + c.verdict.String()
	if c.Error != "" && c.verdict != verdictAbandoned {
		s += ": " + clean(c.Error)
	}
	return s
}

func (r *runView) label() string {
	s := "run " + strconv.Itoa(r.ID)
	switch {
	case r.ReplayOf != 0:
		s += ", replay of " + strconv.Itoa(r.ReplayOf)
	case r.Doubts:
		s += ", waits for " + strconv.Itoa(r.Cause)
	case r.Cause != 0:
		s += ", sibling"
	}
	return s
}

func (r *runView) note() string {
	s := millis(r.to-r.from) + " ms, " + r.verdict.String()
	if r.RefutedBy != 0 {
		s += " by " + strconv.Itoa(r.RefutedBy)
	}
	return s
}

// shortCallSite returns Service/Method of /pkg.Service/Method.
func shortCallSite(site string) string {
	site = clean(site)
	if site == "" {
		return "(no name)"
	}
	if i := strings.LastIndexByte(site, '/'); i > 0 {
		if j := strings.LastIndexByte(site[:i], '.'); j >= 0 {
			return site[j+1:]
		}
	}
	return strings.TrimPrefix(site, "/")
}

// clean makes user text safe to print: one line, valid, without control
// characters, which a terminal might obey.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// millis formats a time in milliseconds with at most four digits or microseconds.
func millis(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	digits := 3
	switch {
	case d >= 100*time.Millisecond:
		digits = 1
	case d >= 10*time.Millisecond:
		digits = 2
	}
	s := strconv.FormatFloat(float64(d)/1e6, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

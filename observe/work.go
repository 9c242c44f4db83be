package observe

import (
	"slices"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/critpath"
)

// work is one request being worked out. It is used again for others.
type work struct {
	calls      []critpath.Call
	outcomes   []critpath.Outcome // of the guesses that were made
	of         []int              // of each call, its method in used, or -1 for a wait
	shared     []critpath.Outcome // of the guesses if all callers get the same response
	reads      []bool             // it may be predicted without being told so
	unknown    []bool             // it is not known whether its server takes calls on a guess
	pins       []pin
	used       []use
	weight     float64       // how many methods each that is weighed stands for, because a request has too many
	speculated bool          // a call was: the times are not those of a request without speculation
	saved      time.Duration // by speculation, if so

	together critpath.Result // with all predictions that would be used
	// unsureReads: there are methods that are not declared free of side effects and whose names say
	// that they are. ifReads is together if they are.
	unsureReads bool
	ifReads     critpath.Result
	// ifPlain is together if servers of which that is not known take no calls on a guess.
	ifPlain critpath.Result
	stops   []time.Duration // in together, how long each call waited for what was only predicted
}

// use is a method's part in one request.
type use struct {
	method         *method
	guessed, right int
	shared         bool // there were guesses if all callers get the same response
	taken          bool // its predictions would be used
	weighed        bool // it is worked out what they are worth
	unsure         bool // it may only read

	alone, saved, gain, cost time.Duration
	// sharedSaved is alone if all callers get the same response.
	sharedSaved time.Duration
	aloneExtra  int
}

// read takes in a request's calls and waits. It reports whether their times make sense.
func (w *work) read(r *control.RequestRecord) bool {
	*w = work{calls: w.calls[:0], outcomes: w.outcomes[:0], of: w.of[:0], used: w.used[:0], reads: w.reads[:0],
		unknown: w.unknown[:0], stops: w.stops[:0], pins: w.pins, shared: w.shared[:0]}
	if r.Duration < 0 || r.Arm > control.ArmOn {
		return false
	}
	tasks := len(r.Tasks) > 0
	w.pin(r.Waits)
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Start < 0 || c.End < c.Start {
			return false
		}
		w.speculated = w.speculated || c.Mode == control.ModeOn
		reads := onGuesses(c.Effect)
		outside := tasks && c.Task == 0 // where nothing speculates
		ahead := c.SendPlainly && c.Effect == control.EffectNone
		held := c.Peer == control.PeerPlain && !ahead || c.Peer == control.PeerNever
		w.reads = append(w.reads, reads)
		w.unknown = append(w.unknown, reads && !outside && !ahead && c.Peer == control.PeerUnknown)
		w.calls = append(w.calls, critpath.Call{
			Method: c.CallSite, Start: c.Start, End: c.End, Pure: reads && !held && !outside, Firm: outside || w.pinned(c),
			Staged: c.Effect == control.EffectStaged, Effects: c.Effect != control.EffectNone, Ordered: c.Ordered,
			Again: ahead && c.Failed && c.Peer == control.PeerPlain,
		})
		outcome := critpath.Unpredicted
		switch {
		case c.Guessed && c.Right:
			outcome = critpath.Right
		case c.Guessed:
			outcome = critpath.Wrong
		}
		w.outcomes = append(w.outcomes, outcome)
		shared := critpath.Unpredicted
		switch {
		case c.SharedGuessed && c.SharedRight:
			shared = critpath.Right
		case c.SharedGuessed:
			shared = critpath.Wrong
		}
		w.shared = append(w.shared, shared)
		w.of = append(w.of, -1)
	}
	for i := range r.Waits {
		c := waiting(&r.Waits[i])
		if c.Start < 0 || c.End < c.Start {
			return false
		}
		w.calls, w.outcomes, w.of = append(w.calls, c), append(w.outcomes, critpath.Unpredicted), append(w.of, -1)
		w.shared = append(w.shared, critpath.Unpredicted)
		w.reads, w.unknown = append(w.reads, false), append(w.unknown, false)
	}
	if w.speculated {
		w.saved = realised(r)
	}
	return true
}

// pin is when a task came past its first barrier.
type pin struct {
	task int
	at   time.Duration
}

// pin finds the first barriers.
func (w *work) pin(waits []control.WaitRecord) {
	w.pins = w.pins[:0]
	for i := range waits {
		at := &waits[i]
		if at.Kind != control.WaitBarrier && at.Kind != control.WaitStream {
			continue
		}
		if known := slices.IndexFunc(w.pins, func(p pin) bool { return p.task == at.Task }); known >= 0 {
			w.pins[known].at = min(w.pins[known].at, at.Start)
		} else if len(w.pins) < maxPins {
			w.pins = append(w.pins, pin{at.Task, at.Start})
		}
	}
}

// maxPins bounds the tasks of a request whose barriers are looked at.
const maxPins = 64

// pinned reports whether a call's code had come past a barrier, after which nothing is predicted.
func (w *work) pinned(c *control.CallRecord) bool {
	return slices.ContainsFunc(w.pins, func(p pin) bool { return p.task == c.Task && p.at <= c.Start })
}

// waiting returns what a wait is to the model: what is not begun on a guess. Barriers, streams and
// ends of tasks take no time of their own: what comes after a stream was opened is the program's.
func waiting(at *control.WaitRecord) critpath.Call {
	c := critpath.Call{Method: at.Name, Start: at.Start, End: at.End, Fresh: at.Kind == control.WaitResult}
	c.Barrier = at.Kind == control.WaitBarrier || at.Kind == control.WaitStream
	if at.Kind != control.WaitAct && at.Kind != control.WaitHooks {
		c.End = c.Start
	}
	return c
}

// realised returns how much later the request would have ended without speculation. Tasks may run
// beside each other and beside plain calls, so that what they saved does not add up: each is
// stretched by what it saved.
func realised(r *control.RequestRecord) time.Duration {
	if len(r.Tasks) == 1 && r.Tasks[0].End <= r.Duration && len(r.Calls) > 0 && !slices.ContainsFunc(r.Calls, ofNoTask) {
		return r.Tasks[0].Saved
	}
	units := make([]critpath.Call, 0, len(r.Tasks))
	for _, t := range r.Tasks {
		units = append(units, critpath.Call{Start: t.Start, End: t.End})
	}
	for _, c := range r.Calls {
		if c.Task == 0 {
			units = append(units, critpath.Call{Start: c.Start, End: c.End})
		}
	}
	p, err := critpath.New(critpath.Request{End: r.Duration, Calls: units})
	if err != nil {
		return 0
	}
	return p.Stretch(func(unit int) time.Duration {
		if unit < len(r.Tasks) {
			return r.Tasks[unit].Saved
		}
		return 0
	}) - r.Duration
}

func ofNoTask(c control.CallRecord) bool { return c.Task == 0 }

// assign says which method call i is of. It is called for each call in order, under the kind's mu.
func (w *work) assign(i int, m *method) {
	at := -1
	for j := range w.used {
		if w.used[j].method == m {
			at = j
		}
	}
	if at < 0 {
		at = len(w.used)
		u := use{method: m, taken: !m.loses && !m.other && (w.reads[i] || m.predicted)}
		u.unsure = !w.reads[i] && m.reads && !m.loses
		w.unsureReads = w.unsureReads || u.unsure
		w.used = append(w.used, u)
	}
	w.of[i] = at
	// The guess at this call may be the first one of the method ever.
	w.used[at].taken = w.used[at].taken || m.predicted && !m.loses && !m.other
	w.used[at].shared = w.used[at].shared || predicted(w.shared[i])
	switch w.outcomes[i] {
	case critpath.Right:
		w.used[at].right++
		w.used[at].guessed++
	case critpath.Wrong:
		w.used[at].guessed++
	}
}

// simple works out what takes no thinking: a request without guesses, and one with a single call.
func (w *work) simple(duration time.Duration) bool {
	as := critpath.Result{End: duration}
	if w.together, w.ifReads, w.ifPlain = as, as, as; !slices.ContainsFunc(w.outcomes, predicted) &&
		!slices.ContainsFunc(w.shared, predicted) {
		return true
	}
	if len(w.calls) > 1 || w.calls[0].Firm {
		return false
	}
	// What comes after the call begins with it, and the request still waits for the call; unless
	// the call outlived it.
	c, u := w.calls[0], &w.used[0]
	gain, redo := time.Duration(0), time.Duration(0)
	if c.End <= duration {
		gain, redo = duration-max(c.Start+duration-c.End, c.End), c.Start
	}
	worth := func(o critpath.Outcome) time.Duration {
		switch o {
		case critpath.Right:
			return gain
		case critpath.Wrong:
			return -redo
		}
		return 0
	}
	u.sharedSaved = worth(w.shared[0])
	if !predicted(w.outcomes[0]) {
		return true
	}
	saved := worth(w.outcomes[0])
	then := critpath.Result{End: duration - saved}
	if u.taken {
		w.together, w.ifPlain, u.saved = then, then, saved
	}
	if u.taken || u.unsure {
		w.ifReads = then
	}
	u.gain, u.alone = gain, saved
	return true
}

func predicted(o critpath.Outcome) bool { return o != critpath.Unpredicted }

// replay works out what predictions would have changed by making the calls again.
func (w *work) replay(duration time.Duration) error {
	p, err := critpath.New(critpath.Request{End: duration, Calls: w.calls, Redo: true})
	if err != nil {
		return err
	}
	w.together = p.Replay(w.taken(-1, critpath.Unpredicted))
	for i := range w.calls {
		w.stops = append(w.stops, p.Held(i))
	}
	for i := range w.used {
		if !w.used[i].weighed {
			continue
		}
		as := p
		if u := &w.used[i]; u.unsure && !u.taken { // what it would be worth if it is declared to do so
			if as, err = w.reading(p.Request(), func(at int) bool { return at == i }); err != nil {
				return err
			}
		}
		w.weigh(as, i)
	}
	w.weighShared(p)
	w.ifReads, w.ifPlain = w.together, w.together
	if slices.Contains(w.unknown, true) {
		w.ifPlain = p.Holding(w.unknown, w.taken(-1, critpath.Unpredicted))
	}
	if w.unsureReads {
		return w.foreseeReads(duration)
	}
	return nil
}

// taken returns the outcomes of the predictions that would be used, those of a method, if it is not
// -1, replaced.
func (w *work) taken(replaced int, by critpath.Outcome) func(int) critpath.Outcome {
	return func(call int) critpath.Outcome {
		switch at := w.of[call]; {
		case w.outcomes[call] == critpath.Unpredicted:
			return critpath.Unpredicted
		case at == replaced:
			return by
		case w.used[at].taken:
			return w.outcomes[call]
		default:
			return critpath.Unpredicted
		}
	}
}

// weigh works out what one method's predictions are worth, alone and with the others.
func (w *work) weigh(p *critpath.Path, i int) {
	u := &w.used[i]
	alone := p.Replay(func(call int) critpath.Outcome {
		if w.of[call] != i {
			return critpath.Unpredicted
		}
		return w.outcomes[call]
	})
	u.alone, u.aloneExtra = p.Request().End-alone.End, alone.Extra
	without, right, wrong := w.together, w.together, w.together
	if u.taken {
		without = p.Replay(w.taken(i, critpath.Unpredicted))
	}
	if !u.taken || u.right < u.guessed {
		right = p.Replay(w.taken(i, critpath.Right))
	}
	if !u.taken || u.right > 0 {
		wrong = p.Replay(w.taken(i, critpath.Wrong))
	}
	if u.taken {
		u.saved = without.End - w.together.End
	}
	u.gain = max(without.End-right.End, 0)
	u.cost = max(wrong.ExtraTime-without.ExtraTime, 0)
}

// maxShared bounds the work for what methods are worth if all callers get the same response:
// methods times calls.
const maxShared = 256

// weighShared works out what methods' predictions are worth alone if all callers get the same
// response.
func (w *work) weighShared(p *critpath.Path) {
	work := 0
	for i := range w.used {
		u := &w.used[i]
		if work += len(w.calls); !u.shared || work > maxShared && i > 0 {
			continue
		}
		u.sharedSaved = p.Request().End - p.Replay(func(call int) critpath.Outcome {
			if w.of[call] != i {
				return critpath.Unpredicted
			}
			return w.shared[call]
		}).End
	}
}

// reading returns the request with some methods, by their places in used, free of side effects.
func (w *work) reading(r critpath.Request, reads func(at int) bool) (*critpath.Path, error) {
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		if at := w.of[i]; at >= 0 && reads(at) {
			r.Calls[i].Effects = false
		}
	}
	return critpath.New(r)
}

// foreseeReads works out the request again with the methods free of side effects that may be.
func (w *work) foreseeReads(duration time.Duration) error {
	for i := range w.calls {
		if at := w.of[i]; at >= 0 && w.used[at].unsure {
			w.calls[i].Pure = true
		}
	}
	p, err := w.reading(critpath.Request{End: duration, Calls: w.calls, Redo: true},
		func(at int) bool { return w.used[at].unsure })
	if err != nil {
		return err
	}
	w.ifReads = p.Replay(func(call int) critpath.Outcome {
		if at := w.of[call]; at >= 0 && (w.used[at].taken || w.used[at].unsure) {
			return w.outcomes[call]
		}
		return critpath.Unpredicted
	})
	return nil
}

// onGuesses reports whether calls of the class may be sent on guesses.
func onGuesses(e control.Effect) bool {
	return e == control.EffectNone || e == control.EffectStaged || e == control.EffectPredicated
}

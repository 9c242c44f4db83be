package observe

import (
	"slices"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/internal/critpath"
)

// work is one request being worked out. It is used again for others.
type work struct {
	calls      []critpath.Call
	outcomes   []critpath.Outcome // of the guesses that were made
	of         []int              // of each call, its method in used
	used       []use
	weight     float64       // how many methods each that is weighed stands for, because a request has too many
	speculated bool          // a call was: the times are not those of a request without speculation
	saved      time.Duration // by speculation, if so

	together critpath.Result // with all predictions that would be used
	// unsureReads: there are methods that are not declared free of side effects and whose names say that they are.
	// ifReads is together if they are.
	unsureReads bool
	ifReads     critpath.Result
}

// use is a method's part in one request.
type use struct {
	method         *method
	guessed, right int
	taken          bool // its predictions would be used
	weighed        bool // it is worked out what they are worth
	unsure         bool // it may only read

	alone, saved, gain, cost time.Duration
	aloneExtra               int
}

// read takes in a request's calls. It reports whether their times make sense.
func (w *work) read(r *foresay.RequestRecord) bool {
	*w = work{calls: w.calls[:0], outcomes: w.outcomes[:0], of: w.of[:0], used: w.used[:0]}
	if r.Duration < 0 || r.Arm > foresay.ArmOn {
		return false
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Start < 0 || c.End < c.Start {
			return false
		}
		w.speculated = w.speculated || c.Mode == foresay.ModeOn
		w.calls = append(w.calls, critpath.Call{
			Method: c.Site, Start: c.Start, End: c.End,
			Pure: c.Effect == foresay.EffectNone || c.Effect == foresay.EffectStaged,
		})
		outcome := critpath.Unpredicted
		switch {
		case c.Guessed && c.Right:
			outcome = critpath.Right
		case c.Guessed:
			outcome = critpath.Wrong
		}
		w.outcomes = append(w.outcomes, outcome)
	}
	if w.speculated {
		w.saved = realised(r)
	}
	return true
}

// realised returns how much later the request would have ended without speculation. Tasks may run beside each other and
// beside plain calls, so that what they saved does not add up: each is stretched by what it saved.
func realised(r *foresay.RequestRecord) time.Duration {
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

func ofNoTask(c foresay.CallRecord) bool { return c.Task == 0 }

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
		u := use{method: m, taken: !m.loses && !m.other && (w.calls[i].Pure || m.predicted)}
		u.unsure = !w.calls[i].Pure && m.reads && !m.loses
		w.unsureReads = w.unsureReads || u.unsure
		w.used = append(w.used, u)
	}
	w.of = append(w.of, at)
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
	if w.together, w.ifReads = as, as; !slices.ContainsFunc(w.outcomes, predicted) {
		return true
	}
	if len(w.calls) > 1 {
		return false
	}
	// What comes after the call begins with it, and the request still waits for the call; unless the call outlived it.
	c, u, right := w.calls[0], &w.used[0], w.outcomes[0] == critpath.Right
	gain := time.Duration(0)
	if c.End <= duration {
		gain = duration - max(c.Start+duration-c.End, c.End)
	}
	then := critpath.Result{End: duration - gain}
	if right && u.taken {
		w.together, u.saved = then, gain
	}
	if right && (u.taken || u.unsure) {
		w.ifReads = then
	}
	if u.gain = gain; right {
		u.alone = gain
	}
	return true
}

func predicted(o critpath.Outcome) bool { return o != critpath.Unpredicted }

// replay works out what predictions would have changed by making the calls again.
func (w *work) replay(duration time.Duration) error {
	p, err := critpath.New(critpath.Request{End: duration, Calls: w.calls})
	if err != nil {
		return err
	}
	w.together = p.Replay(w.taken(-1, critpath.Unpredicted))
	for i := range w.used {
		if w.used[i].weighed {
			w.weigh(p, i)
		}
	}
	w.ifReads = w.together
	if w.unsureReads {
		return w.foreseeReads(duration)
	}
	return nil
}

// taken returns the outcomes of the predictions that would be used, those of a method, if it is not -1, replaced.
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

// foreseeReads works out the request again with the methods free of side effects that may be.
func (w *work) foreseeReads(duration time.Duration) error {
	for i := range w.calls {
		if u := &w.used[w.of[i]]; u.unsure {
			w.calls[i].Pure = true
		}
	}
	p, err := critpath.New(critpath.Request{End: duration, Calls: w.calls})
	if err != nil {
		return err
	}
	w.ifReads = p.Replay(func(call int) critpath.Outcome {
		if u := &w.used[w.of[call]]; u.taken || u.unsure {
			return w.outcomes[call]
		}
		return critpath.Unpredicted
	})
	return nil
}

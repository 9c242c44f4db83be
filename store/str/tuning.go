package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// tuning is a coordinator's part in choosing the degree of the cluster [STR §6.7]. One chooses: the
// first in the layout's order that is there. All tell it what has become of transactions in each
// window, and it tells all which degree the next one has.
type tuning struct {
	order []protocol.ID // all coordinators
	self  int           // this one's place
	// number is that of the window, and of the setting in force.
	number uint64
	// since is when the window begins here. Transactions that began before a change of the degree do
	// not count, if that can be helped: then it is some time after the change.
	since     time.Duration
	done      window
	latencies []time.Duration // of the last commits

	chooser protocol.ID   // who was last heard of that may choose
	heard   time.Duration // and when

	tuner   *tuner // of the one that chooses; nil: somebody else does
	reports map[protocol.ID]report
	last    []tuned // windows of the cluster, the latest last
	over    uint64  // how many there were
}

// tuned is a window with the degree that it had.
type tuned struct {
	window
	degree degree
}

// tuneTimer is when coordinators tell each other how it goes, and which degree is in force.
type tuneTimer struct{}

const (
	// tuneTrips is how many round trips there are between two such words.
	tuneTrips = 2
	// silentTunes is after how many of them that are missing somebody else chooses: the first one that
	// is left. Those that come later in the order wait for one more each.
	silentTunes = 4
	// maxLatencies is how many of a window's commits say how long they take.
	maxLatencies = 1000
	// lastWindows is how many windows are kept for who wants to look.
	lastWindows = 20
	// lastNumber bounds numbers that are believed.
	lastNumber = 1 << 62
)

func newTuning(l store.Layout, self protocol.ID) tuning {
	var t tuning
	for _, s := range l.Sites {
		t.order = append(t.order, s.Coordinators...)
	}
	t.self = slices.Index(t.order, self)
	t.chooser = t.order[0]
	return t
}

// status tells how the degree is chosen; nil: somebody else does.
func (t *tuning) status() *store.TuningStatus {
	if t.tuner == nil {
		return nil
	}
	out := &store.TuningStatus{Settled: t.tuner.settled(), Windows: t.over}
	for _, w := range t.last {
		out.Last = append(out.Last, store.TuningWindow{Degree: w.degree.String(), Length: w.Length, Committed: w.Committed,
			Aborted: w.Aborted, Latency: w.Latency})
	}
	return out
}

// tune tells the one that chooses how it goes or, at that one, chooses, and tells all.
func (c *coordinator) tune(env *protocol.Env[store.Message]) {
	env.After(tuneTrips*c.cfg.RoundTrip, tuneTimer{})
	t := &c.tuning
	mine := report{t.number, t.window(env.Now)}
	if t.tuner == nil {
		if env.Now-t.heard <= time.Duration(silentTunes+t.self)*tuneTrips*c.cfg.RoundTrip {
			if t.chooser != c.cfg.ID {
				env.Send(t.chooser, mine)
			}
			return
		}
		t.tuner = newTuner(c.degree, c.cfg.RoundTrip)
		c.beginWindow(env, t.number+1, c.degree)
	} else {
		t.reports[c.cfg.ID] = mine
		if w := t.merged(); w.Length > 0 && t.tuner.isEnough(w) {
			t.last = append(t.last[max(0, len(t.last)+1-lastWindows):], tuned{w, c.degree})
			t.over++
			c.beginWindow(env, t.number+1, t.tuner.next(w))
		}
	}
	c.tellSetting(env)
}

func (c *coordinator) tellSetting(env *protocol.Env[store.Message]) {
	for _, id := range c.tuning.order {
		if id != c.cfg.ID {
			env.Send(id, setting{c.tuning.number, c.degree})
		}
	}
}

// beginWindow has a degree in force from now on.
func (c *coordinator) beginWindow(env *protocol.Env[store.Message], number uint64, d degree) {
	t := &c.tuning
	before := t.window(env.Now).Latency
	t.number, t.since, t.done, t.latencies = number, env.Now, window{}, nil
	t.reports = map[protocol.ID]report{}
	if d != c.degree {
		t.since += min(max(before, tuneTrips*c.cfg.RoundTrip), longTrips*c.cfg.RoundTrip)
		c.setDegree(env, d)
	}
}

// onSetting takes what another coordinator says that is in force. If two choose, the first one in
// the order goes on.
func (c *coordinator) onSetting(env *protocol.Env[store.Message], from protocol.ID, m setting) {
	t := &c.tuning
	place := slices.Index(t.order, from)
	if !c.mode.tunes || place < 0 || place == t.self || m.Degree > degreeMost || m.Number > lastNumber {
		return
	}
	if t.tuner != nil && place > t.self { // it hears of this one's, which is newer then
		if m.Number >= t.number {
			if t.over == 0 { // it has chosen nothing yet, and may have been started again
				t.tuner = newTuner(m.Degree, c.cfg.RoundTrip)
			}
			c.beginWindow(env, m.Number+1, t.tuner.degree)
			c.tellSetting(env)
		}
		return
	}
	if place < t.self {
		t.tuner, t.chooser, t.heard = nil, from, env.Now
		if m.Number < t.number { // it was started again, and is to go on from here
			env.Send(from, setting{t.number, c.degree})
		}
	}
	if m.Number > t.number {
		c.beginWindow(env, m.Number, m.Degree)
	}
}

// onReport takes how it goes at another coordinator.
func (c *coordinator) onReport(from protocol.ID, m report) {
	t := &c.tuning
	if t.tuner != nil && m.Number == t.number && m.Window.Length > 0 && slices.Contains(t.order, from) {
		t.reports[from] = m
	}
}

// counts counts a transaction that has ended.
func (t *tuning) counts(now time.Duration, x *txn, committed bool) {
	switch {
	case now < t.since:
	case !committed:
		t.done.Aborted++
	default:
		if took := now - x.began; len(t.latencies) < maxLatencies {
			t.latencies = append(t.latencies, took)
		} else {
			t.latencies[t.done.Committed%maxLatencies] = took
		}
		t.done.Committed++
	}
}

// window returns how it goes here.
func (t *tuning) window(now time.Duration) window {
	w := t.done
	w.Length = max(now-t.since, 0)
	if n := len(t.latencies); n > 0 {
		w.Latency = slices.Sorted(slices.Values(t.latencies))[n-1-n/100]
	}
	return w
}

// merged is how it goes in the cluster, as if all had counted for as long as the one that has for
// longest.
func (t *tuning) merged() (all window) {
	for _, r := range t.reports { //pure:ok the latest of all
		all.Length, all.Latency = max(all.Length, r.Window.Length), max(all.Latency, r.Window.Latency)
	}
	for _, r := range t.reports { //pure:ok sums of whole numbers
		if w := r.Window; w.Length > 0 {
			by := all.Length.Seconds() / w.Length.Seconds()
			all.Committed += uint64(float64(w.Committed) * by)
			all.Aborted += uint64(float64(w.Aborted) * by)
		}
	}
	return all
}

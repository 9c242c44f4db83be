package control

import (
	"time"

	"github.com/foresay/foresay/report"
)

// The engine's side of the package: what the engine asks of call sites, Controls and requests, and
// what it tells them. These are methods of types without a name outside, so that the documentation
// shows an operator what is an operator's.
type (
	engine         struct{}
	engineCallSite CallSite
	engineControl  Control
	engineRequest  Request
)

// Engine returns what the engine asks of no call site, Control or request in particular. It is for
// the engine alone.
func Engine() engine { return engine{} }

// KilledFromOutside reports whether the environment says that nothing speculates.
func (engine) KilledFromOutside() bool { return killedFromOutside() }

// Engine returns the call site as the engine sees it. It is for the engine alone.
func (s *CallSite) Engine() *engineCallSite { return (*engineCallSite)(s) }

// Engine returns the Control as the engine sees it. It is for the engine alone.
func (c *Control) Engine() *engineControl { return (*engineControl)(c) }

// Engine returns the request as the engine sees it. It is for the engine alone. Of no request it
// returns nil, on which only Waits may be called.
func (r *Request) Engine() *engineRequest { return (*engineRequest)(r) }

// Config returns the call site's configuration, which must not be changed.
func (e *engineCallSite) Config() *CallSiteConfig { return &e.cfg }

// Counts returns the counters, to be counted up.
func (e *engineCallSite) Counts() *callSiteCounters { return &e.stats }

// Saved notes how long code went on before an answer that was predicted rightly.
func (e *engineCallSite) Saved(d time.Duration) {
	e.stats.SavedNanos.Add(int64(d))
	if d >= (*CallSite)(e).guessCost() {
		e.stats.Paid.Add(1)
	}
}

// Quickest returns the least time that the call site's calls took lately.
func (e *engineCallSite) Quickest() *quickest { return &e.quickest }

// Offers returns whether the call site's servers predict.
func (e *engineCallSite) Offers() *offers { return &e.offers }

// Repeats returns what was answered last to the same request of the same caller.
func (e *engineCallSite) Repeats() *repeats { return &e.repeats }

// Shared returns what was answered last to the same request, whoever asked.
func (e *engineCallSite) Shared() *repeats { return &e.shared }

// Local reports whether what is called is a part of the program.
func (e *engineCallSite) Local() bool { return e.local }

// Limited notes that a limit was met.
func (e *engineCallSite) Limited(by Limit) {
	e.stats.Limited.Add(1)
	e.stats.Limit.Store(&by)
}

// Guesses reports whether the call site takes predictions, be it for some requests only.
func (e *engineCallSite) Guesses() bool {
	if e.killed || e.control != nil && e.control.killed.Load() {
		return false
	}
	return e.board.now.Load().mode > ModeObserve && !e.trip.holds()
}

// Tries reports whether the call site takes but a few predictions, to see whether they pay again.
func (e *engineCallSite) Tries() bool { return e.trip.at(e.board.now.Load().mode) == StateProbing }

// Off reports whether the call site neither makes nor learns predictions.
func (e *engineCallSite) Off() bool {
	return e.board.now.Load().mode == ModeOff || e.killed || e.control != nil && e.control.killed.Load()
}

// GoesOn notes that a call, which a request or none is for, has predictions to go on with.
func (e *engineCallSite) GoesOn(r *Request) {
	e.trip.probe()
	if r != nil && !r.compared && e.board.now.Load().mode == ModeOn {
		r.always.Store(true)
	}
}

// Due returns the call site's Control if it is time for that to judge its call sites, and nil
// otherwise.
func (e *engineCallSite) Due() *Control {
	if e.control != nil && e.control.due() {
		return e.control
	}
	return nil
}

// Judge looks at all call sites, if it is time. It is called when something happened that may
// change what they are worth.
func (e *engineControl) Judge() { (*Control)(e).judge() }

// Tracer returns what follows the Control's tasks, or nil.
func (e *engineControl) Tracer() Tracer { return e.cfg.Tracer }

// MayRecord reports whether the next task may be recorded.
func (e *engineControl) MayRecord() bool { return e.recent.due() }

// Records reports whether a task that begins now is to be recorded.
func (e *engineControl) Records() bool { return e.recent.wants() }

// Keep keeps the report of a task that was to be recorded.
func (e *engineControl) Keep(r *report.Report) { e.recent.add(r) }

// Ahead notes that so many runs more, or fewer, have gone on with predictions.
func (e *engineControl) Ahead(runs int64) { e.runs.Add(runs) }

// Name returns the name of the kind of request.
func (e *engineRequest) Name() string { return e.name }

// Start returns when the request began.
func (e *engineRequest) Start() time.Time { return e.start }

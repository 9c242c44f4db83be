package control

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Effect says what a call does at its server besides answering.
type Effect uint8

const (
	// EffectUnknown leaves it to the transport to find out; if it cannot, the
	// call is taken to have side effects.
	EffectUnknown Effect = iota
	// EffectNone: the call may run for a caller that turns out to be wrong.
	EffectNone
	// EffectStaged: the server holds the effects back until the call is confirmed.
	EffectStaged
	// EffectImmediate: the call takes effect when it runs, so it is sent only
	// when its caller stands on no open assumption.
	EffectImmediate
	// EffectPredicated: the call takes effect when it runs, but its server refuses it unless the
	// results that its caller guessed, which it is told, are what it answered. So it is sent on
	// guesses at calls of its own session (driver.Domain), and on no others. Of a call that has no
	// session, such as one of a gRPC method, this is EffectImmediate.
	EffectPredicated
)

// String returns the name that configuration files use.
func (e Effect) String() string {
	names := [...]string{"unknown", "none", "staged", "immediate", "predicated"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}

// Predictor guesses responses. Its methods are called concurrently, and must
// not keep or change their arguments' contents.
type Predictor interface {
	// Predict returns guesses at the response, best first, or none.
	Predict(ctx context.Context, request any) []any
	// Learn tells of a confirmed actual response.
	Learn(ctx context.Context, request, response any)
}

// A ChangeLearner is a Predictor to which a response says nothing new that is
// exactly the one that it predicted. It may be left out then.
type ChangeLearner interface {
	Predictor
	LearnsChanges()
}

// An OwningPredictor is a Predictor whose predictions nobody ever changes: they
// are used without another copy.
type OwningPredictor interface {
	Predictor
	OwnsPredictions()
}

// CallSiteConfig describes a call site. The zero value of every field but Name is
// its default.
type CallSiteConfig struct {
	// Name addresses the site: the full gRPC method, "/pkg.Service/Method".
	Name string
	// Mode is what is done with predictions. ModeDefault: what the connection says,
	// ModeObserve where there is none.
	Mode Mode
	// Share is that of the requests for which ModeShadow and ModeCanary do more than
	// observe, from 0 to 1.
	Share float64
	// Effect is the effect class. EffectUnknown: from the method's declaration.
	Effect Effect
	// Predictors are asked in order, after the values given to Predicting.
	Predictors []Predictor
	// Equal says when an actual response counts as the predicted one, which then
	// is the call's result for the whole task. nil: when they are equal. It need
	// not be transitive: the first prediction to arrive that is equal wins.
	Equal func(prediction, actual any) bool
	// ConflictKey groups calls with side effects: calls with different, non-empty
	// keys, of any call sites, commute. nil: the call conflicts with all.
	ConflictKey func(request any) string
	// Key replaces the request's bytes in the identity of a call, by which a
	// replay recognises it.
	Key func(request any) []byte
	// IgnoreMetadata names the outgoing metadata that are no part of a call's identity:
	// a replay uses a call again that differs in nothing else, and predictors take its
	// caller for the same. All others are part of it, and so is what interceptors and
	// credentials find in the context. nil: TracingMetadata().
	IgnoreMetadata []string
	// Ordered sends a call only when earlier calls of ordered call sites in its lane
	// are answered, so that of two reads the later never sees the older state.
	// Goroutines that share a lane, without Group or Go, keep no order between
	// each other's calls.
	Ordered bool
	// ServerPredictions asks the server to predict also for callers that stand
	// on no assumption. Once 64 calls in a row were offered nothing, one in 64 asks.
	ServerPredictions bool
	// SendPlainly has a call whose caller stands on a guess be sent as an ordinary
	// one where its server takes no calls on guesses, instead of held: the server
	// answers a request that may be computed from a wrong guess, and does not know.
	// If that fails the call is made again, after it. Only for EffectNone.
	SendPlainly bool
	// Limits bound what is predicted at the call site and sent on predictions.
	Limits CallSiteLimits
}

// TracingMetadata returns the names of the metadata by which requests are traced.
// They change from one attempt to the next, and no answer depends on them.
func TracingMetadata() []string {
	return []string{
		"b3", "grpc-trace-bin", "sentry-trace", "traceparent", "tracestate", "uber-trace-id", "x-amzn-trace-id",
		"x-b3-flags", "x-b3-parentspanid", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid", "x-cloud-trace-context",
		"x-correlation-id", "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-tags", "x-datadog-trace-id",
		"x-request-id",
	}
}

// CallSiteStats counts what happened at a call site since it was made.
type CallSiteStats struct {
	Calls     int64 `json:"calls"`     // calls made by runs, without those answered from a record
	Plain     int64 `json:"plain"`     // calls made outside of tasks
	Predicted int64 `json:"predicted"` // predictions that runs went on with
	Right     int64 `json:"right"`     // confirmed calls whose result was one of their predictions
	Wrong     int64 `json:"wrong"`     // confirmed calls with predictions, none of which was the result
	Misled    int64 `json:"misled"`    // runs that went on with a prediction that was wrong
	Held      int64 `json:"held"`      // calls that waited before they were sent
	Adopted   int64 `json:"adopted"`   // calls that a later run used again
	Abandoned int64 `json:"abandoned"` // calls made for a wrong guess, in vain
	Refused   int64 `json:"refused"`   // attempts that the server or the transport refused
	Invalid   int64 `json:"invalid"`   // predictions that could not be responses
	Learnt    int64 `json:"learnt"`    // confirmed results told to the predictors

	// In ModeObserve and where predictions were not taken: calls for which there
	// was one, by whether it was right.
	WouldBeRight int64 `json:"would_be_right"`
	WouldBeWrong int64 `json:"would_be_wrong"`

	// What the call site's predictions caused, at whatever call sites.
	// how long code went on before answers that were predicted rightly; it may overlap
	SavedNanos  int64 `json:"saved_ns"`
	Wasted      int64 `json:"wasted"`    // calls sent in vain
	WastedNanos int64 `json:"wasted_ns"` // how long these took
	Shadows     int64 `json:"shadows"`   // times that work was started and thrown away
	Trips       int64 `json:"trips"`
	// tasks that were stuck at a call, by a defect of Foresay, and went on without speculation
	Stalls int64 `json:"stalls"`
	Open   int64 `json:"open"` // calls that have a prediction and no actual response, now

	// Limited is how often a limit kept a call from being predicted, or sent on a
	// prediction; LimitedBy is the limit that was met last.
	Limited   int64 `json:"limited"`
	LimitedBy Limit `json:"limited_by,omitempty"`
}

// CallSite is one call site: its configuration, predictors and statistics. It is
// safe for concurrent use and lives as long as its client.
type CallSite struct {
	cfg      CallSiteConfig
	control  *Control // nil: none switches it
	conn     string
	board    switchboard
	trip     trip
	stats    callSiteCounters
	quickest quickest
	offers   offers
	repeats  repeats
	shared   repeats      // whoever asked
	local    bool         // what is called is part of the program
	killed   bool         // from outside, while no Control can say otherwise
	pending  atomic.Int64 // calls with predictions and no result
}

type callSiteCounters struct {
	Calls, Plain, Sent, Predicted, Right, Wrong, Misled, Held, Adopted, Abandoned, Refused, Invalid, Learnt,
	Stalls atomic.Int64

	Paid atomic.Int64 // right predictions that saved more than they cost

	WouldBeRight, WouldBeWrong, SavedNanos, Wasted, WastedNanos, Shadows, Trips, Limited atomic.Int64

	Limit atomic.Pointer[Limit] // the last
}

func (c *callSiteCounters) limitedBy() Limit {
	if by := c.Limit.Load(); by != nil {
		return *by
	}
	return ""
}

// NewCallSite validates the configuration.
func NewCallSite(cfg CallSiteConfig) (*CallSite, error) {
	switch {
	case cfg.Name == "":
		return nil, fmt.Errorf("foresay: site: Name is empty; want a full method such as /pkg.Service/Method")
	case cfg.Mode > ModeOn:
		return nil, fmt.Errorf("foresay: site %s: unknown mode %v", cfg.Name, cfg.Mode)
	case !(cfg.Share >= 0 && cfg.Share <= 1):
		return nil, fmt.Errorf("foresay: site %s: Share is %v; want a share of the requests, from 0 to 1", cfg.Name,
			cfg.Share)
	case cfg.Effect > EffectPredicated:
		return nil, fmt.Errorf("foresay: site %s: unknown effect class %v", cfg.Name, cfg.Effect)
	case cfg.SendPlainly && cfg.Effect != EffectNone:
		return nil, fmt.Errorf("foresay: site %s: SendPlainly is for a method without side effects, and this one's effect "+
			"is %v", cfg.Name, cfg.Effect)
	}
	if err := cfg.Limits.check(); err != nil {
		return nil, fmt.Errorf("foresay: site %s: %w", cfg.Name, err)
	}
	for i, p := range cfg.Predictors {
		if p == nil {
			return nil, fmt.Errorf("foresay: site %s: predictor %d is nil", cfg.Name, i)
		}
	}
	if cfg.Mode == ModeDefault {
		cfg.Mode = ModeObserve
	}
	s := newCallSite(cfg)
	s.killed = killedFromOutside()
	return s, nil
}

// newCallSite returns a call site in the mode of its valid configuration.
func newCallSite(cfg CallSiteConfig) *CallSite {
	s := &CallSite{cfg: cfg}
	s.board.code = setting{cfg.Mode, cfg.Share}
	s.switchTo(s.board.code, originCode)
	return s
}

// Config returns the call site's configuration.
func (s *CallSite) Config() CallSiteConfig { return s.cfg }

// LocalCallSite returns a call site of calls that are a part of the program.
func (engine) LocalCallSite(cfg CallSiteConfig) *CallSite {
	s := newCallSite(cfg)
	s.local = true
	return s
}

// Mode returns the mode that the call site is in, and the share of the requests that it is for.
func (s *CallSite) Mode() (mode Mode, share float64) {
	set := s.board.now.Load()
	return set.mode, set.share
}

// Conn returns the name of the connection that the call site belongs to.
func (s *CallSite) Conn() string { return s.conn }

// Stats returns the call site's counters.
func (s *CallSite) Stats() CallSiteStats {
	c := &s.stats
	return CallSiteStats{
		Calls: c.Calls.Load(), Plain: c.Plain.Load(), Predicted: c.Predicted.Load(), Right: c.Right.Load(),
		Wrong: c.Wrong.Load(), Misled: c.Misled.Load(),
		Held: c.Held.Load(), Adopted: c.Adopted.Load(), Abandoned: c.Abandoned.Load(),
		Refused: c.Refused.Load(), Invalid: c.Invalid.Load(), Learnt: c.Learnt.Load(),
		WouldBeRight: c.WouldBeRight.Load(), WouldBeWrong: c.WouldBeWrong.Load(),
		SavedNanos: c.SavedNanos.Load(), Wasted: c.Wasted.Load(), WastedNanos: c.WastedNanos.Load(),
		Shadows: c.Shadows.Load(), Trips: c.Trips.Load(), Stalls: c.Stalls.Load(), Open: s.pending.Load(),
		Limited: c.Limited.Load(), LimitedBy: c.limitedBy(),
	}
}

// offers is what is known of whether a call site's servers predict, see
// CallSiteConfig.ServerPredictions. To be asked costs a call a stream with messages of its
// own, about as much again as the call. Lost updates do not matter.
type offers struct {
	silent  atomic.Int32 // so many calls in a row, at most silence, were offered nothing
	skipped atomic.Int32
}

// silence is after how many calls without a prediction only each so many-th asks.
const silence = 64

// Wanted reports whether a call should ask for predictions.
func (o *offers) Wanted() bool {
	return o.silent.Load() < silence || o.skipped.Add(1)%silence == 0
}

// Heard notes whether a call that asked was offered a prediction.
func (o *offers) Heard(prediction bool) {
	switch n := o.silent.Load(); {
	case prediction && n > 0:
		o.silent.Store(0)
	case !prediction && n < silence:
		o.silent.Add(1)
	}
}

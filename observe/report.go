package observe

import (
	"time"

	"github.com/foresay/foresay/control"
)

// Schema numbers the form of a Report as JSON. It rises when a field changes its meaning or goes;
// new fields do not change it.
const Schema = 1

// Report is what a Collector found out. Times with the suffix _ms are in milliseconds; rates and
// shares are from 0 to 1.
type Report struct {
	Schema int       `json:"schema"`
	Since  time.Time `json:"since"`
	At     time.Time `json:"at"`
	// Budget is the extra load that verdicts allow, negative for any: wasted calls per call that
	// counts.
	Budget   float64         `json:"budget"`
	Requests []RequestReport `json:"requests"` // what would save most in all first
	// LeftOut is how many calls and tasks are in no sum, because their request had too many.
	LeftOut int64 `json:"left_out"`
	// Broken is how many requests had times that make no sense and are in no sum.
	Broken int64           `json:"broken"`
	Status *control.Status `json:"status,omitempty"`
}

// RequestReport is one kind of request.
type RequestReport struct {
	Name     string  `json:"name"`
	Requests int64   `json:"requests"`
	Failed   int64   `json:"failed"`
	Latency  Latency `json:"latency"`
	// Summary says in a sentence what there is to save, and what that costs.
	Summary  string   `json:"summary"`
	Foreseen Foreseen `json:"foreseen"`
	// IfReads is Foreseen for the case that methods whose names say that they only read, but which
	// are not declared so, do only read. Nil if there are none.
	IfReads *Foreseen `json:"if_reads,omitempty"`
	// IfPlain is Foreseen for the case that servers of which that is not known yet take no calls on
	// a guess: they are plain gRPC servers. Nil if that is the same.
	IfPlain *Foreseen `json:"if_plain,omitempty"`
	// Stops are where the predicted requests of Foreseen wait, so that they save no more, the
	// longest first.
	Stops []Stop `json:"stops,omitempty"`
	// Realised is what speculation has saved. Nil as long as no call was speculated.
	Realised *Realised      `json:"realised,omitempty"`
	Canary   *Canary        `json:"canary,omitempty"` // nil as long as nothing is compared
	Recent   Recent         `json:"recent"`
	Methods  []MethodReport `json:"methods"` // what would save most first
}

// Latency is a distribution of times. Quantiles are within 1 %.
type Latency struct {
	Count  int64   `json:"count"`
	MeanMS float64 `json:"mean_ms"`
	P50MS  float64 `json:"p50_ms"`
	P95MS  float64 `json:"p95_ms"`
	P99MS  float64 `json:"p99_ms"`
}

// Foreseen is what requests would have been with predictions, of those requests in which none was
// used.
type Foreseen struct {
	Requests int64 `json:"requests"` // that were worked out
	// Skipped is how many were not, because requests of their kind are large.
	Skipped int64 `json:"skipped"`
	// Beside is in how many of them goroutines ran several steps beside each other. It is not known
	// then which step waited for which call, and what is foreseen may be too much.
	Beside int64   `json:"beside,omitempty"`
	Now    Latency `json:"now"`  // as they were
	Then   Latency `json:"then"` // as they would have been
	// SavedMS is how much earlier they would have ended on average, SavedP50MS how much lower the
	// median would be.
	SavedMS    float64 `json:"saved_ms"`
	SavedP50MS float64 `json:"saved_p50_ms"`
	// ExtraLoad is how many calls would have been wasted per call that counts.
	ExtraLoad float64 `json:"extra_load"`
}

// Stop is where what stands on a guess waits for it to be confirmed.
type Stop struct {
	// Kind is "effects" (a call that has side effects), "plain" (a call to a server that takes none
	// on a guess), "again" (a read that was sent plainly to such a server and failed), "observed" (a
	// call whose caller looks at headers or the like), "order" (a call behind one with effects, or an
	// ordered one behind another), "outside" (a call outside of the request's tasks), "stream",
	// "barrier", "act", "hooks" or "result" (the end of a task).
	Kind   string  `json:"kind"`
	Name   string  `json:"name,omitempty"` // the method, or the key of Act
	WaitMS float64 `json:"wait_ms"`        // per request, on average
}

// Realised is what requests with speculated calls were like.
type Realised struct {
	Requests int64   `json:"requests"`
	Latency  Latency `json:"latency"`
	Tasks    int64   `json:"tasks"`
	// SavedMS is how much longer they would have taken without speculation, per request, by what
	// their tasks waited for and how long that took.
	SavedMS     float64 `json:"saved_ms"`
	WastedCalls int64   `json:"wasted_calls"`
	ExtraLoad   float64 `json:"extra_load"`
	// Untaken: modes would have had guesses taken, but no guess was.
	Untaken bool `json:"untaken,omitempty"`
}

// Recent is what happened lately: in the current window and the one before.
type Recent struct {
	Seconds   float64 `json:"seconds"`
	Requests  int64   `json:"requests"`
	Failed    int64   `json:"failed"`
	MeanMS    float64 `json:"mean_ms"`
	SavedMS   float64 `json:"saved_ms"` // foreseen, per request that was worked out
	ExtraLoad float64 `json:"extra_load"`
}

// Verdict says whether a method's predictions pay.
type Verdict string

// The verdicts.
const (
	WorthIt    Verdict = "worth it"
	NotWorthIt Verdict = "not worth it"
	TooEarly   Verdict = "too early to tell"
	// InUse: the method is speculated, in all requests that were seen, so that what that saves is
	// not foreseen but measured: see RequestReport.Realised.
	InUse Verdict = "in use"
	// Tripped: it is switched on, but does not pay, so that for a while it only observes.
	Tripped Verdict = "tripped"
	// HasEffects: the method is not declared free of side effects, so it is not predicted unless it
	// is said how.
	HasEffects Verdict = "has effects"
)

// MethodReport is the calls of one method by one kind of request.
type MethodReport struct {
	Name   string `json:"name"`
	Effect string `json:"effect"`
	// Mode, Share, State and Reason are those of the method's call site. The verdict of a call site
	// that has tripped, or is tried again, is its fuse's, and BreakEven that of the fuse once that
	// is Conclusive. A method that several connections call in different modes has the mode
	// "mixed".
	Mode   string  `json:"mode,omitempty"`
	Share  float64 `json:"share,omitempty"`
	State  string  `json:"state,omitempty"`
	Reason string  `json:"reason,omitempty"`
	// Predictors is how many the call site has. With none, the guess is the last response to the
	// same request.
	Predictors int `json:"predictors"`

	Calls           int64   `json:"calls"`
	CallsPerRequest float64 `json:"calls_per_request"`
	Failed          int64   `json:"failed"`
	// Asked is for how many calls a guess was looked for, Guessed for how many there was one: none
	// is looked for in mode off, and after the kill switch.
	Asked   int64 `json:"asked"`
	Guessed int64 `json:"guessed"`
	Right   int64 `json:"right"`
	// HitRate is Right of Guessed; with 95 % certainty it is between the two others.
	HitRate     float64 `json:"hit_rate"`
	HitRateLow  float64 `json:"hit_rate_low"`
	HitRateHigh float64 `json:"hit_rate_high"`
	// SharedHitRate is what HitRate would be if all callers got the same response, as "public"
	// declares, of SharedGuessed guesses, and SharedSavedMS what SavedAloneMS would be. Of methods
	// without predictors only.
	SharedHitRate float64 `json:"shared_hit_rate,omitempty"`
	SharedGuessed int64   `json:"shared_guessed,omitempty"`
	SharedSavedMS float64 `json:"shared_saved_ms,omitempty"`
	// RecentHitRate is that of the last two windows, which had RecentGuessed guesses.
	RecentHitRate float64 `json:"recent_hit_rate"`
	RecentGuessed int64   `json:"recent_guessed"`
	Latency       Latency `json:"latency"`

	// SavedAloneMS is what the request would save on average if this method alone were predicted,
	// SavedMS what it would save more with this method than without it, where all others that pay
	// are predicted as well.
	SavedAloneMS float64 `json:"saved_alone_ms"`
	SavedMS      float64 `json:"saved_ms"`
	// ExtraLoad is how many calls would be wasted for this method alone, per call of the request
	// that counts.
	ExtraLoad float64 `json:"extra_load"`
	// GainMS is what a right guess saves on the request's critical path, CostMS how long the calls
	// take that a wrong one wastes. BreakEven is the hit rate from which on guesses pay.
	GainMS    float64 `json:"gain_ms"`
	CostMS    float64 `json:"cost_ms"`
	BreakEven float64 `json:"break_even"`
	// Foreseen says that SavedAloneMS, SavedMS and ExtraLoad are known. Compared says that the
	// verdict or the call site's fuse compares hit rates with BreakEven. Until then BreakEven comes
	// from too little to be told.
	Foreseen bool `json:"foreseen"`
	Compared bool `json:"compared"`

	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"` // in one sentence
	// Needed is about how many more guesses it takes to tell.
	Needed int64 `json:"needed,omitempty"`
	// Configure is what to write into the call site file, if there is something to do: a line, or
	// if the call site has predictors what to set in its line, which is then not in braces.
	Configure string `json:"configure,omitempty"`
}

// Canary compares requests on both sides of a canary, or those in mode on with the few that it
// leaves without speculation. Intervals hold the true value in 95 % of cases.
type Canary struct {
	On  Arm `json:"on"`
	Off Arm `json:"off"`
	// Left is the share of the requests that mode on leaves without speculation; 0 if a canary put
	// all requests on their sides, or if it is not known.
	Left float64 `json:"left,omitempty"`
	// MeanMS, P50MS and FailedShare are on less off: less than nothing is better. The interval of
	// the means is Welch's, that of the medians Price and Bonett's of 2002, from order statistics,
	// that of the shares Newcombe's. All are nil as long as there are too few requests for one of
	// them.
	MeanMS      *Interval `json:"mean_ms,omitempty"`
	P50MS       *Interval `json:"p50_ms,omitempty"`
	FailedShare *Interval `json:"failed_share,omitempty"`
	Summary     string    `json:"summary"`
}

// Arm is one side of a canary.
type Arm struct {
	Requests    int64    `json:"requests"`
	Canary      int64    `json:"by_canary"` // requests that a canary put there, the others mode on did
	Failed      int64    `json:"failed"`
	FailedShare Interval `json:"failed_share"` // Wilson's
	Latency     Latency  `json:"latency"`
}

// Interval is an estimate and between what it lies with 95 % certainty.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

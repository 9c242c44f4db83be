package report

import "time"

// Report is what happened in a task. Times are offsets from the task's start;
// -1 stands for never. Runs and Calls are in the order in which they began, and
// their IDs count from 1 in that order.
type Report struct {
	Task     string        `json:"task"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	// Outcome is "confirmed", or why there is no result.
	Outcome string `json:"outcome"`
	Runs    []Run  `json:"runs"`
	Calls   []Call `json:"calls"`
	// Saved is what the task would have taken longer without speculation, and
	// Wasted how many of its calls were wasted: see TaskRecord. Saved is 0, too, if
	// nobody counts: the task has no Control, neither by its options nor as part of
	// one of the Control's requests (Control.Context).
	Saved  time.Duration `json:"saved_ns,omitempty"`
	Wasted int           `json:"wasted,omitempty"`
	// Stalls counts how often the task was stuck, by a defect of Foresay, and went
	// on without speculation.
	Stalls int `json:"stalls,omitempty"`
	// LimitedBy are the limits that kept the task from speculating more, as Limit names them.
	LimitedBy []string `json:"limited_by,omitempty"`
	// Speculative says that the task handles a call whose caller stood on a guess.
	Speculative bool `json:"speculative,omitempty"`
}

// Run is one execution of the task's function.
type Run struct {
	ID       int           `json:"id"`
	Started  time.Duration `json:"started_ns"`
	Returned time.Duration `json:"returned_ns"` // its function, or -1
	Ended    time.Duration `json:"ended_ns"`    // confirmed or discarded
	// State is "confirmed", "discarded" or "open".
	State string `json:"state"`
	// RefutedBy is the call whose result discarded the run, 0 for none.
	RefutedBy int `json:"refuted_by,omitempty"`
	// Cause is the call for which the run was started, 0 for the first run: its
	// result discarded the run ReplayOf, or, if ReplayOf is 0, the run takes
	// another prediction of it than the runs before, or none if Doubts is set:
	// the code may give the call up, and the run waits to see.
	Cause    int  `json:"cause,omitempty"`
	ReplayOf int  `json:"replay_of,omitempty"`
	Doubts   bool `json:"doubts,omitempty"`
	// Steps are the calls that the run made, in order.
	Steps []Step `json:"steps"`
}

// Step is one run's use of a call.
type Step struct {
	Call int           `json:"call"`
	Lane string        `json:"lane,omitempty"`
	At   time.Duration `json:"at_ns"`
	// Resumed is when the run had an answer.
	Resumed time.Duration `json:"resumed_ns"`
	// Prediction is the index of the prediction that the run took, or -1 for
	// the actual result, or -2 if it never had an answer.
	Prediction int `json:"prediction"`
	// Adopted says that the call was in the task's record: an earlier run, or for
	// Act an earlier step, had made it.
	Adopted bool `json:"adopted,omitempty"`
}

// Call is one remote operation.
type Call struct {
	ID        int             `json:"id"`
	CallSite  string          `json:"site"`
	Lane      string          `json:"lane,omitempty"`
	Effect    string          `json:"effect"`
	Made      time.Duration   `json:"made_ns"`
	Held      []Hold          `json:"held,omitempty"`
	Sent      []Send          `json:"sent,omitempty"`
	Predicted []time.Duration `json:"predicted_ns,omitempty"` // arrival of each prediction
	Answered  time.Duration   `json:"answered_ns"`            // arrival of the actual result, or -1
	// Match is the index of the prediction that the actual result equals, or -1.
	Match     int           `json:"match"`
	Error     string        `json:"error,omitempty"`
	Confirmed time.Duration `json:"confirmed_ns"` // when its caller was known to be right, or -1
	Abandoned time.Duration `json:"abandoned_ns"` // when nobody wanted it any more, or -1
}

// Hold says since when a call was not sent, and why.
type Hold struct {
	At     time.Duration `json:"at_ns"`
	Reason string        `json:"reason"`
}

// Send is one attempt at a call.
type Send struct {
	At time.Duration `json:"at_ns"`
	// Speculative says that the attempt was sent for a caller that stood on a guess.
	Speculative bool `json:"speculative"`
}

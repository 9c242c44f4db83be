package telemetry

import "go.opentelemetry.io/otel/attribute"

// scope is the name of the instrumentation.
const scope = "github.com/foresay/foresay/telemetry"

// The attributes of spans.
const (
	keyTask        = attribute.Key("foresay.task")         // the task's name
	keyOutcome     = attribute.Key("foresay.outcome")      // see below
	keyRuns        = attribute.Key("foresay.runs")         // how often the task's code was run
	keySavedMs     = attribute.Key("foresay.saved_ms")     // what the task would have taken longer
	keyWastedMs    = attribute.Key("foresay.wasted_ms")    // how long wasted calls took, added up
	keyWastedCalls = attribute.Key("foresay.wasted_calls") // wasted calls
	keyLeftOut     = attribute.Key("foresay.left_out")     // spans that the task would have had
	keySpeculative = attribute.Key("foresay.speculative")  // sent, or called, on a guess
	keyCallSite    = attribute.Key("foresay.site")         // the full method
	keyMode        = attribute.Key("foresay.mode")         // what was done with the prediction
	keyRun         = attribute.Key("foresay.run")          // of the task, from 1
	keyCall        = attribute.Key("foresay.call")         // of the task, from 1
	keyLane        = attribute.Key("foresay.lane")         // of the run, where it is not the first
	keyPrediction  = attribute.Key("foresay.prediction")   // which of the call's, from 0
	keyDepth       = attribute.Key("foresay.depth")        // guesses that the run stood on, this one included
	keyAdopted     = attribute.Key("foresay.adopted")      // the call was an earlier run's
	keyReplayOf    = attribute.Key("foresay.replay_of")    // the run that was wrong
	keyReason      = attribute.Key("foresay.reason")       // why a call was held, or a task failed
	keyLink        = attribute.Key("foresay.link")         // what a link is to
)

// Outcomes.
const (
	confirmed  = "confirmed"
	discarded  = "discarded"
	unresolved = "unresolved" // the task ended before it was known
	cancelled  = "cancelled"  // a task's context was
	failed     = "failed"     // a task has no result
	sent       = "sent"       // a held call, in the end
)

// What links are to.
const (
	linkCall   = "call"   // the client span of the call
	linkBranch = "branch" // the branch that was wrong
)

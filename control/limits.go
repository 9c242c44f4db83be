package control

import "time"

// Limits bound the speculation of one task. A zero field means its default. At
// a limit the task waits, as it would without Foresay; it never fails.
type Limits struct {
	// Depth is how many open assumptions a run may stand on, those of its
	// callers on other nodes included. Default 32.
	Depth int
	// Width is how many runs of a task may be alive at once: several
	// predictions for one call make one each. One that waits for a call that was
	// predicted and then cancelled is started whatever the limits say. Default 4.
	Width int
	// Replays is how often a task's function may be run beyond the first time
	// before the task stops taking predictions. Default 64.
	Replays int
	// Runs is how many runs of a task may execute at once, discarded ones that
	// have not noticed included. Default 16.
	Runs int
	// MinSaving is the least time worth saving. If what a speculative caller
	// waits for takes less than that, by how long calls of its call site took at best
	// in the last seconds, then calls are sent for that caller only when it has
	// waited for so long, and the processors have time: on a fast network, wrong
	// guesses cost hardly more than no guesses, on a busy machine too. Default
	// 500 µs; negative: send at once.
	MinSaving time.Duration
	// AdoptGrace is how long the calls of a discarded run stay adoptable when no
	// run has returned since. Default 250 ms.
	AdoptGrace time.Duration
}

// A Limit is what keeps a call from being predicted, or sent on a prediction, though nothing else
// does.
type Limit string

// The limits. A task's report and a call site's statistics name those that were met.
const (
	LimitDepth           Limit = "depth"                             // Limits.Depth
	LimitWidth           Limit = "width"                             // Limits.Width
	LimitReplays         Limit = "replays"                           // Limits.Replays
	LimitRuns            Limit = "runs"                              // Limits.Runs
	LimitCallSiteDepth   Limit = "the site's depth"                  // CallSiteLimits.Depth
	LimitCallSitePending Limit = "the site's pending calls"          // CallSiteLimits.Pending
	LimitHalfOpen        Limit = "half-open calls of the connection" // of the client
	LimitStreams         Limit = "streams that the peer admits"      // of a connection
	LimitServer          Limit = "half-open calls, depth or size at the server"
)

package foresay

import (
	"context"
	"log/slog"
	"time"

	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/report"
)

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
	// waits for takes less than that, by how long calls of its site took at best
	// in the last seconds, then calls are sent for that caller only when it has
	// waited for so long, and the processors have time: on a fast network, wrong
	// guesses cost hardly more than no guesses, on a busy machine too. Default
	// 500 µs; negative: send at once.
	MinSaving time.Duration
	// AdoptGrace is how long the calls of a discarded run stay adoptable when no
	// run has returned since. Default 250 ms.
	AdoptGrace time.Duration
}

func (l Limits) tree() spectree.Limits {
	return spectree.Limits{
		Depth: orDefault(l.Depth, 32), Width: orDefault(l.Width, 4),
		Replays: orDefault(l.Replays, 64), Runs: orDefault(l.Runs, 16),
	}
}

func orDefault(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}

type taskConfig struct {
	name    string
	limits  Limits
	logger  *slog.Logger
	report  func(*report.Report)
	control *Control

	predictions []any
	equal       func(prediction, actual any) bool
}

// Option configures a task: a call of Do, Go or Then outside of a task. Inside,
// the enclosing task's options hold. All, Any and Quorum take no options; outside
// of a task All is one itself, with those of WithDefaults.
type Option interface {
	CallOption
	task()
}

// CallOption configures Go or Then.
type CallOption interface{ apply(*taskConfig) }

type option func(*taskConfig)

func (o option) apply(c *taskConfig) { o(c) }
func (o option) task()               {}

type callOption func(*taskConfig)

func (o callOption) apply(c *taskConfig) { o(c) }

// WithLimits bounds the task's speculation.
func WithLimits(l Limits) Option { return option(func(c *taskConfig) { c.limits = l }) }

// WithName names the task in reports and logs. Without it a task has the name of the request that
// it is made for.
func WithName(name string) Option { return option(func(c *taskConfig) { c.name = name }) }

// WithLogger has the task's decisions logged at debug level.
func WithLogger(l *slog.Logger) Option { return option(func(c *taskConfig) { c.logger = l }) }

// WithReport has f called once, when the task has ended, with what happened in
// it. Recording costs about a microsecond per event.
func WithReport(f func(*report.Report)) Option { return option(func(c *taskConfig) { c.report = f }) }

// WithControl makes the task one of the Control's: its tracer follows it, and its
// report may be kept. Sites are switched by the Control of their connection.
func WithControl(c *Control) Option { return option(func(cfg *taskConfig) { cfg.control = c }) }

// Guess offers values for the result of Go before it is known, best first.
func Guess[T any](values ...T) CallOption {
	return callOption(func(c *taskConfig) {
		for _, v := range values {
			c.predictions = append(c.predictions, v)
		}
	})
}

// EqualBy sets when an actual result counts as the predicted one. The default
// is proto.Equal for protocol buffers and reflect.DeepEqual for the rest.
func EqualBy[T any](equal func(prediction, actual T) bool) CallOption {
	return callOption(func(c *taskConfig) {
		c.equal = func(p, a any) bool {
			pt, ok := p.(T)
			at, ok2 := a.(T)
			return ok && ok2 && equal(pt, at)
		}
	})
}

type defaultsKey struct{}

// WithDefaults returns a context whose tasks start with these options.
func WithDefaults(ctx context.Context, opts ...Option) context.Context {
	return context.WithValue(ctx, defaultsKey{}, with(defaults(ctx), opts))
}

// noOptions is the configuration of most tasks.
var noOptions taskConfig //tidy:ok nobody changes it

// defaults returns the configuration that tasks start with. It is shared: see with.
func defaults(ctx context.Context) *taskConfig {
	if cfg, ok := ctx.Value(defaultsKey{}).(*taskConfig); ok {
		return cfg
	}
	return &noOptions
}

// with returns a configuration changed by options: the same one if there are none.
func with[O CallOption](cfg *taskConfig, opts []O) *taskConfig {
	if len(opts) == 0 {
		return cfg
	}
	changed := *cfg
	for _, o := range opts {
		o.apply(&changed)
	}
	return &changed
}

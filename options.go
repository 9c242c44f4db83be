package foresay

import (
	"context"
	"log/slog"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/report"
)

func treeLimits(l control.Limits) spectree.Limits {
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
	name   string
	limits control.Limits
	logger *slog.Logger
	report func(*report.Report)

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
func WithLimits(l control.Limits) Option { return option(func(c *taskConfig) { c.limits = l }) }

// WithName names the task in reports and logs. Without it a task has the name of the request that
// it is made for.
func WithName(name string) Option { return option(func(c *taskConfig) { c.name = name }) }

// WithLogger has the task's decisions logged at debug level.
func WithLogger(l *slog.Logger) Option { return option(func(c *taskConfig) { c.logger = l }) }

// WithReport has f called once, when the task has ended, with what happened in
// it. Recording costs about a microsecond per event.
func WithReport(f func(*report.Report)) Option { return option(func(c *taskConfig) { c.report = f }) }

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

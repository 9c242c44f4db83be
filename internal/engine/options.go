package engine

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

// Option is foresay.Option.
type Option interface {
	CallOption
	task()
}

// CallOption is foresay.CallOption.
type CallOption interface{ apply(*taskConfig) }

type option func(*taskConfig)

func (o option) apply(c *taskConfig) { o(c) }
func (o option) task()               {}

type callOption func(*taskConfig)

func (o callOption) apply(c *taskConfig) { o(c) }

// WithLimits is foresay.WithLimits.
func WithLimits(l control.Limits) Option { return option(func(c *taskConfig) { c.limits = l }) }

// WithName is foresay.WithName.
func WithName(name string) Option { return option(func(c *taskConfig) { c.name = name }) }

// WithLogger is foresay.WithLogger.
func WithLogger(l *slog.Logger) Option { return option(func(c *taskConfig) { c.logger = l }) }

// WithReport is foresay.WithReport.
func WithReport(f func(*report.Report)) Option { return option(func(c *taskConfig) { c.report = f }) }

// Guess is foresay.Guess.
func Guess[T any](values ...T) CallOption {
	return callOption(func(c *taskConfig) {
		for _, v := range values {
			c.predictions = append(c.predictions, v)
		}
	})
}

// EqualBy is foresay.EqualBy.
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

// WithDefaults is foresay.WithDefaults.
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

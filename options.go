package foresay

import (
	"context"
	"log/slog"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/engine"
	"github.com/foresay/foresay/report"
)

// Option configures a task: a call of Do, Go or Then outside of a task. Inside,
// the enclosing task's options hold. All, Any and Quorum take no options; outside
// of a task All is one itself, with those of WithDefaults.
type Option = engine.Option

// CallOption configures Go or Then.
type CallOption = engine.CallOption

// WithLimits bounds the task's speculation.
func WithLimits(l control.Limits) Option {
	return engine.WithLimits(l)
}

// WithName names the task in reports and logs. Without it a task has the name of the request that
// it is made for.
func WithName(name string) Option {
	return engine.WithName(name)
}

// WithLogger has the task's decisions logged at debug level.
func WithLogger(l *slog.Logger) Option {
	return engine.WithLogger(l)
}

// WithReport has f called once, when the task has ended, with what happened in
// it. Recording costs about a microsecond per event.
func WithReport(f func(*report.Report)) Option {
	return engine.WithReport(f)
}

// WithDefaults returns a context whose tasks start with these options.
func WithDefaults(ctx context.Context, opts ...Option) context.Context {
	return engine.WithDefaults(ctx, opts...)
}

// Guess offers values for the result of Go before it is known, best first.
func Guess[T any](values ...T) CallOption {
	return engine.Guess(values...)
}

// EqualBy sets when an actual result counts as the predicted one. The default
// is proto.Equal for protocol buffers and reflect.DeepEqual for the rest.
func EqualBy[T any](equal func(prediction, actual T) bool) CallOption {
	return engine.EqualBy(equal)
}

package driver

import (
	"context"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/engine"
)

// What a transport describes, and what the engine gives it to carry.
type (
	// Operation is one remote call as a transport describes it to the engine.
	Operation = engine.Operation
	// Attempt is one try at carrying out a call, as its transport sees it.
	Attempt = engine.Attempt
	// Assumption is a predicted result that the caller of an attempt goes on with.
	Assumption = engine.Assumption
	// Domain is what Operation.Domain points to: operations with the same pointer have the same one.
	Domain = engine.Domain
)

// Perform makes a call as a transport describes it, for the run that ctx belongs to: it returns a
// predicted response at once if there is one, and the actual result otherwise. The value is shared
// by runs and must not be changed. Without a run in ctx it panics: see InTask. The error is the
// transport's own, foresay.ErrMisspeculated, foresay.ErrDiverged, or an error that wraps ctx's if
// ctx ended while the code waited.
func Perform(ctx context.Context, op *Operation) (any, error) { return engine.Perform(ctx, op) }

// Watched is a call of plain code that is observed. The zero value is ready, and is so again after
// Done.
type Watched = engine.Watched

// A Handler is a server's handling of one call, as a task whose caller may be speculative.
type (
	Handler       = engine.Handler
	HandlerConfig = engine.HandlerConfig
)

// NewHandler returns a handler that has not begun. ctx is the call's.
func NewHandler(ctx context.Context, cfg HandlerConfig) *Handler { return engine.NewHandler(ctx, cfg) }

// BarrierBefore is foresay.Barrier for a transport, which has something to do that cannot be done
// on a guess: its kind and name tell reports what the code waits for.
func BarrierBefore(ctx context.Context, kind control.WaitKind, name string) error {
	return engine.BarrierBefore(ctx, kind, name)
}

// InTask reports whether ctx belongs to a run of a task, so that calls made with it may be
// predicted, held and replayed.
func InTask(ctx context.Context) bool { return engine.InTask(ctx) }

// Lane returns a value that is the same for all code of one goroutine of a run, and another one for
// every other goroutine; nil outside of a task. A library that keeps what it computed can tell by
// it whether others would use a value on whose guesses they do not stand: they must wait, with
// foresay.Barrier, before.
func Lane(ctx context.Context) any { return engine.Lane(ctx) }

// OwnKey reports whether a key of context values is the engine's own: what is under it is no part
// of what a call sends.
func OwnKey(key any) bool { return engine.OwnKey(key) }

// Sameness is what is known of whether two things are the same.
type Sameness = engine.Sameness

// The kinds of Sameness, by what they rule out: of several, the highest counts.
const (
	Same = engine.Same
	// PerhapsSame: they cannot be compared, such as two pointers to what others may change.
	PerhapsSame = engine.PerhapsSame
	Different   = engine.Different
)

// CompareValues compares two values by what they hold. What they point to is not looked at, since
// others may change it: two pointers are one and the same, or perhaps the same.
func CompareValues(a, b any) Sameness { return engine.CompareValues(a, b) }

// CompareContextValues is CompareValues for what two contexts hold under one key: spans of tracing
// libraries are the same, see IsSpan.
func CompareContextValues(a, b any) Sameness { return engine.CompareContextValues(a, b) }

// IsSpan reports whether a context's value is a span of a tracing library. Each run of a function
// may have its own; it is sent only in control.TracingMetadata.
func IsSpan(v any) bool { return engine.IsSpan(v) }

type probing struct{}

// Probe returns the context of a call that no program made: by which a transport finds out
// something of its own process, as specgrpc does of a server's interceptors. What counts or traces
// calls leaves it out.
func Probe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }

// IsProbe reports whether ctx is that of such a call.
func IsProbe(ctx context.Context) bool { return ctx.Value(probing{}) != nil }

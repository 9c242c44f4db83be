package engine

import (
	"context"

	"github.com/foresay/foresay/control"
)

// Operation is one remote call as a transport, such as specgrpc, describes it
// to the engine. All that it holds must stay unchanged from Perform on: of what
// the caller may change, a Keeper makes its own copy.
type Operation struct {
	// CallSite is the call site's configuration and statistics. Required.
	CallSite *control.CallSite
	// Conn names the connection. Calls on different connections are different calls.
	Conn string
	// Identity is what makes two calls of one call site on one connection the same
	// call: the deterministic request bytes, or the CallSite's key of them, and the
	// metadata that go out with them. What it cannot hold, a Comparer compares.
	Identity string
	// Whole says that Identity tells the call site and the connection, too.
	Whole bool
	// Request is the request as the CallSite's predictors and conflict key see it.
	Request any
	// Observed says that the caller looks at the transport (headers, trailers,
	// peer): such a call is neither predicted nor sent for a speculative caller.
	Observed bool
	// CanSpeculate says that Transport can carry a caller that is itself
	// speculative. Without it such a call is held until its caller is confirmed.
	CanSpeculate bool
	// Peer is what is known of the server, for those who look at requests.
	Peer control.Peer
	// Transport carries the attempts.
	Transport Transport

	few   [1]any // what the call's predictions begin with; here to save an allocation
	light *light // whose call it is, see Plainly
}

// Transport carries an Operation's attempts. Its methods are called without
// locks held, but for those of Releaser and Ender: see there.
type Transport interface {
	// Start begins an attempt and returns at once, unless the transport is a BlockingTransport. The
	// transport calls a.Finish exactly once. ctx carries the caller's values, outside of the task;
	// it has the caller's deadline unless a.Speculative(). It ends when nobody wants the attempt
	// any more, unless a resolver was set with a.OnResolve and not called yet: then the resolver is
	// called instead.
	Start(ctx context.Context, a *Attempt)
	// Equal says whether an actual response counts as the predicted one. It may
	// run user code; a panic counts as "no".
	Equal(prediction, actual any) bool
	// Same says whether two predictions are the same value, exactly.
	Same(a, b any) bool
	// Accept makes a value offered as a prediction the engine's own: it checks
	// the type and copies. It reports false for what cannot be a response.
	Accept(prediction any) (any, bool)
}

// config returns the configuration of the call's call site.
func (op *Operation) config() *control.CallSiteConfig { return op.CallSite.Engine().Config() }

// key returns what makes two calls the same call.
func (op *Operation) key() string {
	if op.Whole {
		return op.Identity
	}
	return op.config().Name + "\x00" + op.Conn + "\x00" + op.Identity
}

// BlockingTransport is a Transport whose Start returns when the attempt has
// ended. The engine calls it in a goroutine that has nothing else to do.
type BlockingTransport interface {
	Transport
	Blocking()
}

// Ender is a Transport whose calls fail in a way of their own if their context ends.
type Ender interface {
	Transport
	// Ended returns the error of a call whose code gave up, for the reason that err
	// says. It wraps err. It may be called with the task's lock held: it must not
	// block, and must not call the task.
	Ended(err error) error
}

// Adopter is a Transport that need not copy predictions that nobody changes.
type Adopter interface {
	Transport
	// Adopt is Accept for such a prediction.
	Adopt(prediction any) (any, bool)
}

// An Asker is a Transport that tells predictors more about the call than its
// context does: on whose behalf it is made.
type Asker interface {
	Transport
	// Ask returns the context with which predictors are asked, and told the result.
	Ask(ctx context.Context) context.Context
}

// asking returns the context with which the call site's predictors are asked.
func (op *Operation) asking(ctx context.Context) context.Context {
	ctx = plain(ctx)
	if a, ok := op.Transport.(Asker); ok {
		ctx = a.Ask(ctx)
	}
	return ctx
}

// Keeper is a Transport that has to make the Operation its own before it can be
// carried out or the caller goes on.
type Keeper interface {
	Transport
	// Keep is called at most once, by Perform, in the caller's goroutine. It is
	// not called for a call that was sent already, by an earlier run: then nothing
	// uses the Operation once Perform has returned.
	Keep()
}

// Releaser is a Transport that can let go of what only its attempts need.
type Releaser interface {
	Transport
	// Release is called once the call has its result and its caller is known to be
	// right: no attempt of it is made any more, and nobody learns from its Request,
	// which may be nil from then on. It is called with the task's lock held: it must
	// not block, and must not call the task.
	Release()
}

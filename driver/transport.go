package driver

import "context"

// What a transport implements: Transport at least. The engine has the same interfaces, without
// comments, as it cannot import this package (TestInterfacesAreTheEngines).

// Transport carries an Operation's attempts. Its methods are called without locks held, but for
// those of Releaser and Ender: see there.
type Transport = interface {
	// Start begins an attempt and returns at once, unless the transport is a BlockingTransport. The
	// transport calls a.Finish exactly once. ctx carries the caller's values, outside of the task;
	// it has the caller's deadline unless a.Speculative(). It ends when nobody wants the attempt
	// any more, unless a resolver was set with a.OnResolve and not called yet: then the resolver is
	// called instead.
	Start(ctx context.Context, a *Attempt)
	// Equal says whether an actual response counts as the predicted one. It may run user code; a
	// panic counts as "no".
	Equal(prediction, actual any) bool
	// Same says whether two predictions are the same value, exactly.
	Same(a, b any) bool
	// Accept makes a value offered as a prediction the engine's own: it checks the type and copies.
	// It reports false for what cannot be a response.
	Accept(prediction any) (any, bool)
}

// BlockingTransport is a Transport whose Start returns when the attempt has ended. The engine calls
// it in a goroutine that has nothing else to do.
type BlockingTransport interface {
	Transport
	Blocking()
}

// Adopter is a Transport that need not copy predictions that nobody changes.
type Adopter interface {
	Transport
	// Adopt is Accept for such a prediction.
	Adopt(prediction any) (any, bool)
}

// An Asker is a Transport that tells predictors more about the call than its context does: on whose
// behalf it is made.
type Asker interface {
	Transport
	// Ask returns the context with which predictors are asked, and told the result.
	Ask(ctx context.Context) context.Context
}

// A Comparer is a Transport that says more about which of its calls are the same.
type Comparer interface {
	Transport
	// SameCall compares with other, of an Operation of the same Identity, in what Identity cannot
	// tell, such as options.
	SameCall(other Transport) Sameness
	// SameContext compares what the connection is known to look up in contexts of calls of this
	// method. As long as that is not known, they are perhaps the same.
	SameContext(a, b context.Context) Sameness
	// Told reports whether Identity tells, or need not tell, what a context has under this key.
	Told(key any) bool
}

// A Digester is a Transport that can tell requests and responses apart by a number. It lets a call
// site without predictors find out how often the last response to the same request would have been
// the right one, without keeping responses.
type Digester interface {
	Transport
	// RequestDigest is equal for calls whose responses may be compared: it tells requests apart,
	// and on whose behalf they are made. 0: it cannot be told, which may be otherwise when the call
	// has been made.
	RequestDigest(ctx context.Context) uint64
	// ResponseDigest is equal for responses that are equivalent. false: it cannot be told.
	ResponseDigest(response any) (digest uint64, ok bool)
}

// A PublicDigester is a Digester that can tell requests apart whoever makes them. It lets a call
// site without predictors find out how often the last response to the same request, of any caller,
// would have been the right one: whether it pays to declare the responses public. Nobody is given
// another one's response for that: digests are compared, and nothing else is kept.
type PublicDigester interface {
	Digester
	// PublicDigest is equal for equal requests. 0: it cannot be told.
	PublicDigest() uint64
}

// Ender is a Transport whose calls fail in a way of their own if their context ends.
type Ender interface {
	Transport
	// Ended returns the error of a call whose code gave up, for the reason that err says. It wraps
	// err. It may be called with the task's lock held: it must not block, and must not call the
	// task.
	Ended(err error) error
}

// Keeper is a Transport that has to make the Operation its own before it can be carried out or the
// caller goes on.
type Keeper interface {
	Transport
	// Keep is called at most once, by Perform, in the caller's goroutine. It is not called for a
	// call that was sent already, by an earlier run: then nothing uses the Operation once Perform
	// has returned.
	Keep()
}

// Releaser is a Transport that can let go of what only its attempts need.
type Releaser interface {
	Transport
	// Release is called once the call has its result and its caller is known to be right: no
	// attempt of it is made any more, and nobody learns from its Request, which may be nil from
	// then on. It is called with the task's lock held: it must not block, and must not call the
	// task.
	Release()
}

package engine

import (
	"context"
	"sync"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
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
	// Domain is that of calls which their servers keep in the order in which the code makes them:
	// one need not wait for the answers of those before it. nil: it has none.
	Domain *Domain
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

// Domain is driver.Domain. Attempts at its calls begin in the order in which the engine sends them,
// whichever tasks they belong to: what one of them stands on has begun before it. Those of blocking
// transports do not, as each would hold up the rest.
type Domain struct {
	tree spectree.Domain

	mu       sync.Mutex
	attempts []*Attempt // that are to begin
	starting bool       // somebody begins them
}

// of returns the domain as the tree knows it.
func (d *Domain) of() *spectree.Domain {
	if d == nil {
		return nil
	}
	return &d.tree
}

// queued reports whether the attempt begins in its turn.
func (a *Attempt) queued() bool { return a.call.op.Domain != nil && !a.blocking }

// enqueue has an attempt begin after those before it.
func (d *Domain) enqueue(a *Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts = append(d.attempts, a)
}

// start begins the attempts, unless somebody does.
func (d *Domain) start() {
	d.mu.Lock()
	busy := d.starting
	d.starting = true
	d.mu.Unlock()
	if busy {
		return
	}
	over := false
	defer func() {
		if !over { // a transport has panicked: others begin what is left
			d.mu.Lock()
			defer d.mu.Unlock()
			d.starting = false
		}
	}()
	for a := d.next(); a != nil; a = d.next() {
		a.begin()
	}
	over = true
}

// next takes the first attempt that has yet to begin. If there is none, the next to come has
// somebody begin it.
func (d *Domain) next() *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.attempts) == 0 {
		d.attempts, d.starting = nil, false
		return nil
	}
	a := d.attempts[0]
	d.attempts = d.attempts[1:]
	return a
}

// Transport is driver.Transport, and the same type.
type Transport = interface {
	Start(ctx context.Context, a *Attempt)
	Equal(prediction, actual any) bool
	Same(a, b any) bool
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

// BlockingTransport is driver.BlockingTransport.
type BlockingTransport interface {
	Transport
	Blocking()
}

// Ender is driver.Ender.
type Ender interface {
	Transport
	Ended(err error) error
}

// Adopter is driver.Adopter.
type Adopter interface {
	Transport
	Adopt(prediction any) (any, bool)
}

// Asker is driver.Asker.
type Asker interface {
	Transport
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

// Keeper is driver.Keeper.
type Keeper interface {
	Transport
	Keep()
}

// Releaser is driver.Releaser.
type Releaser interface {
	Transport
	Release()
}

package specgrpc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type outgoingKey struct{}

// outgoing ties the innermost interceptor's work to the attempt it is for. It
// is the context in which the interceptors run, the engine's but for itself.
type outgoing struct {
	context.Context
	call    *call
	attempt *driver.Attempt
	used    atomic.Bool
	stream  *specStream // set once the attempt went over a speculative stream
}

// Value returns the outgoing itself under its key.
func (o *outgoing) Value(key any) any {
	if key == (outgoingKey{}) {
		return o
	}
	o.call.method.looks.note(key)
	return o.Context.Value(key)
}

// Deadline is that of the code's context, or of the task's, for interceptors that look. The call
// has none of its own as long as its caller stands on a guess, see driver.Attempt.Limit, so what
// carry makes of the context has none.
func (o *outgoing) Deadline() (time.Time, bool) {
	if d, ok := o.Context.Deadline(); ok || o.used.Load() || !o.attempt.Speculative() {
		return d, ok
	}
	return o.attempt.CodeDeadline()
}

// drain reads what is left of the attempt's stream.
func (o *outgoing) drain() {
	if o.stream != nil {
		o.stream.drainIfResolved()
	}
}

// carry is the innermost unary interceptor: it chooses between a plain call and
// a speculative stream. Calls that are no attempts of a task, those that other
// interceptors make of their own included, are plain.
func (c *ClientConn) carry(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	out, _ := ctx.Value(outgoingKey{}).(*outgoing)
	if out == nil && cc.GetMethodConfig(method).RetryPolicy == nil {
		return c.plain(ctx, method, req, reply, cc, invoke, opts)
	}
	if out == nil || out.call.conn != c || out.call.method.name != method {
		return c.followed(ctx, method, req, reply, cc, invoke, opts)
	}
	a, m := out.attempt, out.call.method
	if !out.used.CompareAndSwap(false, true) {
		// An interceptor tries again. The attempt has one stream only.
		if out.stream == nil {
			return c.followed(ctx, method, req, reply, cc, invoke, opts)
		}
		return c.hold(ctx, out, "an interceptor tries again", req, reply, cc, invoke, opts)
	}
	speculative := a.Speculative()
	if !speculative && (!a.WantPredictions() || !plainCodec(opts) || !m.asks()) {
		return c.followed(ctx, method, req, reply, cc, invoke, opts)
	}
	result, reason, err := c.speculate(ctx, out, req, reply, cc, opts, speculative)
	if result {
		return err
	}
	if speculative && m.cfg.SendPlainly && m.unaware() && a.MayGoAhead() {
		if err := c.ahead(ctx, out, req, reply, cc, opts); err == nil {
			return nil
		} else if ctx.Err() == nil {
			reason = "sent plainly ahead, it failed: " + err.Error()
		}
	}
	return c.hold(ctx, out, reason, req, reply, cc, invoke, opts)
}

// ahead makes a plain call for a speculative caller: it has no side effects, and its
// call site says that the server may be asked. It takes a stream that others leave, as any
// speculative call. A failure is no result: it may be one of being asked too early.
func (c *ClientConn) ahead(
	ctx context.Context, out *outgoing, req, reply any, cc *grpc.ClientConn, opts []grpc.CallOption,
) error {
	a, room := out.attempt, &c.half.room
	if why := c.half.enter(a, false); why != (lack{}) {
		return errors.New(why.String())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := &aheadCall{cancel: cancel}
	c.half.addAhead(sent)
	defer c.half.removeAhead(sent)
	over := ctx
	a.OnResolve(func(confirmed bool) {
		c.half.removeAhead(sent)
		if limit := a.Limit(); !confirmed || !sent.opened.Load() { // others make room for it once it is made anew
			cancel()
		} else if limit > 0 { // it fails, and so does the plain call that follows
			timer := time.AfterFunc(limit, cancel)
			context.AfterFunc(over, func() { timer.Stop() })
		}
	})
	if left := a.Timeout(); left > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, left)
		defer end()
	}
	since := room.opens()
	again := &attempts{conn: c, attempt: a}
	defer again.end()
	stream, err := c.open(ctx, &unaryDesc, cc, out.call.method.name, again.follow(opts)...)
	room.opened(since, err == nil)
	defer room.gone(true, false)
	if err == nil {
		sent.opened.Store(true)
		err = c.converse(stream, req, reply)
	}
	switch {
	case err == nil:
	case c.half.takenBack(sent):
		return errors.New(neededElsewhere)
	case ctx.Err() == nil:
		a.FailedAhead()
	}
	return err
}

var unaryDesc grpc.StreamDesc //tidy:ok nobody changes it

// hold waits until the call may be made plainly, and makes it: nothing that the
// attempt did so far counts.
func (c *ClientConn) hold(
	ctx context.Context, out *outgoing, reason string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts []grpc.CallOption,
) error {
	m := out.call.method.name
	c.cfg.logger.Debug("specgrpc: call held", "method", m, "target", c.cc.Target(), "reason", reason)
	err := out.attempt.Hold(reason)
	if out.stream != nil {
		// The engine takes the stream for over. One that an interceptor was not
		// content with is not.
		out.stream.resolve(err == nil)
	}
	if err != nil {
		return status.Errorf(codes.Canceled, "specgrpc: %s to %s: nobody wants the call any more: %v", m, c.name(), err)
	}
	ctx, cancel := out.attempt.PlainContext(ctx)
	defer cancel()
	return c.followed(ctx, m, req, reply, cc, invoke, opts)
}

// followed makes an ordinary call of which it is known whether it has its stream, and whose later
// attempts get streams as its first one does.
func (c *ClientConn) followed(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts []grpc.CallOption,
) error {
	a := &attempts{conn: c}
	defer a.end()
	if a.firstSeen(opts) {
		return invoke(ctx, method, req, reply, cc, a.follow(opts)...)
	}
	return c.watched(ctx, method, req, reply, cc, a.follow(opts))
}

// plain makes an ordinary call that no speculative one waits for.
func (c *ClientConn) plain(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts []grpc.CallOption,
) error {
	if !c.half.room.ample() {
		return c.watched(ctx, method, req, reply, cc, opts)
	}
	defer c.half.room.done()
	return invoke(ctx, method, req, reply, cc, opts...)
}

// watched makes an ordinary call where speculative streams may take up what the peer admits. It
// does itself what grpc's own invoker does, and watches whether the call gets a stream: grpc then
// has a goroutine watch each stream, too.
func (c *ClientConn) watched(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts []grpc.CallOption,
) error {
	since := c.half.room.want(ctx)
	relieved := c.relieve()
	stream, err := c.open(ctx, &unaryDesc, cc, method, opts...)
	relieved()
	c.half.room.got(since, err == nil)
	if err != nil {
		return err
	}
	defer c.half.room.gone(false, false)
	return c.converse(stream, req, reply)
}

// converse makes a unary call over its stream.
func (c *ClientConn) converse(stream grpc.ClientStream, req, reply any) error {
	c.half.opened.Add(1)
	if err := stream.SendMsg(req); err != nil {
		return err
	}
	return stream.RecvMsg(reply)
}

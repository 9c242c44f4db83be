package specgrpc

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// ask opens the stream and sends the request.
func (x *exchange) ask(
	ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption, payload []byte,
) (stop func() bool, err error) {
	returned := false
	defer func() {
		if !returned { // user code in grpc panicked: there may be no stream to drain
			x.s.end()
		}
	}()
	if x.speculative {
		stop, err = x.askApart(ctx, cc, opts, payload)
	} else {
		stop, err = x.openAndSend(ctx, cc, opts, payload)
	}
	returned = true
	return stop, err
}

// askApart does so in another goroutine. grpc needs a deep stack for that, twice what it needs to
// wait for the answer: a call that may stay half-open for long leaves it to a goroutine that ends.
func (x *exchange) askApart(
	ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption, payload []byte,
) (stop func() bool, err error) {
	stop, err = never, errNotAsked
	var panicked *panicError
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = asPanic(p)
			}
		}()
		stop, err = x.openAndSend(ctx, cc, opts, payload)
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	return stop, err
}

var errNotAsked = errors.New("specgrpc: opening its stream ended the goroutine")

// openAndSend returns an error if the request did not leave. Until the returned
// function is called the end of ctx ends the stream.
func (x *exchange) openAndSend(
	ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption, payload []byte,
) (stop func() bool, err error) {
	stop, err = x.open(ctx, cc, opts)
	if err != nil {
		return stop, err
	}
	x.s.debug("stream opened", "speculative", x.speculative)
	if err := x.sendable(len(payload)); err != nil {
		return stop, err
	}
	err = x.s.stream.SendMsg(x.request(payload))
	if err == io.EOF { // RecvMsg tells what happened
		err = nil
	}
	x.out.attempt.Sent()
	return stop, err
}

var specDesc = grpc.StreamDesc{ClientStreams: true, ServerStreams: true} //tidy:ok nobody changes it

// askingDesc is how a caller that was confirmed from the start sees the same stream: it
// sends the request and no more, so that the request takes the half-close with it.
var askingDesc = grpc.StreamDesc{ServerStreams: true} //tidy:ok nobody changes it

// open opens the stream. Until the returned function is called the end of ctx
// ends the stream.
func (x *exchange) open(
	ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption,
) (stop func() bool, err error) {
	s := x.s
	x.ctx = ctx
	if x.speculative {
		stop = x.detach()
	} else {
		var cancel context.CancelFunc
		x.own, cancel = context.WithCancel(ctx)
		s.ends(cancel)
		stop = never
	}
	x.configure(cc)
	s.own.Context = x.own
	room := &s.conn.half.room
	var since look
	desc := &specDesc
	if x.speculative {
		since = room.opens()
	} else {
		since = room.want(x.own)
		desc = &askingDesc
	}
	done := x.watch()
	s.stream, err = s.conn.open(&s.own, desc, cc, s.method.spec, x.options(opts)...)
	done()
	if x.speculative {
		room.opened(since, err == nil)
	} else {
		room.got(since, err == nil)
	}
	if err != nil {
		return stop, err
	}
	if x.speculative {
		s.stream.Context() // from here on grpc repeats nothing of its own accord
	}
	x.configure(cc)
	x.limit()
	s.opened.Store(true)
	s.conn.half.opened.Add(1)
	if !x.speculative {
		s.conn.half.hold(s)
	}
	return stop, nil
}

// detach gives the stream of a speculative call a context of its own: an
// interceptor may end x.ctx when the call returns, which must not look like an
// abort. The engine's context does not end before the word is given.
func (x *exchange) detach() (stop func() bool) {
	s := x.s
	stop = never
	x.own = x.ctx
	if x.ctx.Done() != x.out.Done() {
		x.own = context.WithoutCancel(x.ctx)
		stop = context.AfterFunc(x.ctx, x.ctxEnded)
	}
	if deadline, ok := x.ctx.Deadline(); ok {
		// An interceptor limits the call, which begins with Confirm.
		s.limitTo(max(time.Until(deadline), time.Millisecond))
	}
	var cancel context.CancelFunc
	if left := x.out.attempt.Timeout(); left > 0 {
		x.own, cancel = context.WithTimeout(x.own, left)
		s.lease = min(s.lease, left)
	} else {
		x.own, cancel = context.WithCancel(x.own)
	}
	s.ends(cancel)
	return stop
}

// never is a stop function for what does not need one.
func never() bool { return true }

// ctxEnded ends the stream with the context that the interceptors gave it. The
// time limit of an interceptor is none of a speculative call's: the engine's
// context, within, goes on.
func (x *exchange) ctxEnded() {
	engine := x.out.Context
	if x.speculative && x.ctx.Err() == context.DeadlineExceeded && engine.Err() == nil {
		context.AfterFunc(engine, x.s.drop)
		return
	}
	x.s.drop()
}

// options returns the call's options, with room for the frame around the largest
// response. What is sent on a guess does not wait for a connection that fails: if the
// guess is right the call is made plainly, and waits if it is to.
func (x *exchange) options(opts []grpc.CallOption) []grpc.CallOption {
	room := x.s.conn.receive
	if x.limitBytes != defaultReceiveBytes {
		room = grpc.MaxCallRecvMsgSize(x.limitBytes + min(frameOverheadBytes, math.MaxInt-x.limitBytes))
	}
	out := append(append(make([]grpc.CallOption, 0, len(opts)+2), opts...), room)
	for i, o := range opts {
		if own, ok := o.(grpc.PerRPCCredsCallOption); ok && own.Creds != nil {
			out[i] = grpc.PerRPCCredentials(methodCredentials{own.Creds, x.s.method.name})
		}
	}
	if x.speculative {
		out = append(out, grpc.WaitForReady(false))
	} else if x.policy.waitForReady != nil {
		out = append([]grpc.CallOption{grpc.WaitForReady(*x.policy.waitForReady)}, out...)
	}
	return out
}

// methodCredentials are a call's own credentials on the stream that carries it: what they ask gRPC
// for the call's path is the method's.
type methodCredentials struct {
	credentials.PerRPCCredentials
	method string
}

func (c methodCredentials) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	info.Method = c.method
	return c.PerRPCCredentials.GetRequestMetadata(credentials.NewContextWithRequestInfo(ctx, info), uri...)
}

// watch deals with a peer that admits no further stream: a confirmed call has
// half-open ones make room, a speculative one gives way itself.
func (x *exchange) watch() (done func()) {
	c := x.s.conn
	if !x.speculative {
		return c.relieve()
	}
	if c.half.count.Load() <= 1 {
		return func() {}
	}
	return c.whileWaiting(5*patience, func() (again bool) {
		x.s.mu.Lock()
		x.s.word, x.s.why = aborted, "the peer admits no further stream"
		x.s.mu.Unlock()
		x.s.cancel()
		return false
	})
}

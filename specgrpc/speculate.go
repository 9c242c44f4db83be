package specgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// speculate makes a call over a speculative stream. It returns true with the
// call's result, or false with the reason why there is none: the call may be
// made plainly then.
func (c *ClientConn) speculate(ctx context.Context, out *outgoing, req, reply any, cc *grpc.ClientConn, opts []grpc.CallOption, speculative bool) (done bool, reason string, err error) {
	m := out.call.method
	in, ok := req.(proto.Message)
	res, ok2 := reply.(proto.Message)
	switch {
	case !ok || !ok2:
		return false, "an interceptor replaced its messages by something else", nil
	case m.unaware():
		return false, "the server does not speak " + m.spec, nil
	case !plainCodec(opts):
		return false, "the connection's codec is not that of the frames", nil
	}
	payload, err := proto.Marshal(in)
	if err != nil {
		return true, "", status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
	}
	if len(payload) > c.cfg.maxFrame {
		return false, "its request is larger than WithMaxSpeculativeRequest", nil
	}
	x := newExchange(c, out, opts, speculative, len(payload))
	if speculative && !c.half.add(x.s) {
		return false, "too many half-open streams, see WithMaxHalfOpen", nil
	}
	out.stream = x.s
	return x.run(ctx, cc, opts, payload, res)
}

// exchange is the conversation over one speculative stream up to the result.
type exchange struct {
	s           *specStream
	out         *outgoing
	speculative bool
	limitBytes  int // of a response
	answers     answers
	refusal     string
	predictions []proto.Message // in the server's order; nil for what is no response
	tentative   *result
	ctx, own    context.Context // the interceptors', the stream's
}

// result is what a Final says.
type result struct {
	value proto.Message
	err   error
}

func newExchange(c *ClientConn, out *outgoing, opts []grpc.CallOption, speculative bool, requestBytes int) *exchange {
	a := out.attempt
	s := &specStream{
		conn: c, method: out.call.method, lease: c.cfg.lease, reading: true,
		id:    attemptID{call: a.ID(), number: clamp(a.Number())},
		limit: a.Limit(), small: requestBytes <= smallRequestBytes,
	}
	if !speculative {
		s.word = confirmed
	}
	return &exchange{s: s, out: out, speculative: speculative, limitBytes: responseLimit(opts)}
}

// defaultReceiveBytes is the largest message that grpc receives by default.
const defaultReceiveBytes = 4 << 20

// responseLimit returns the size of the largest response that the caller accepts.
func responseLimit(opts []grpc.CallOption) int {
	limit := defaultReceiveBytes
	for _, o := range opts {
		if o, ok := o.(grpc.MaxRecvMsgSizeCallOption); ok {
			limit = o.MaxRecvMsgSize
		}
	}
	return limit
}

func clamp(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

func (x *exchange) run(ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption, payload []byte, reply proto.Message) (done bool, reason string, err error) {
	stop, err := x.open(ctx, cc, opts)
	defer stop()
	if err == nil {
		x.s.debug("stream opened", "speculative", x.speculative)
		err = x.s.stream.SendMsg(x.request(payload))
	} else {
		defer x.s.end()
		return x.unsent(err)
	}
	switch {
	case err != nil && err != io.EOF: // EOF: RecvMsg tells what happened
		x.s.end()
		return x.unsent(err)
	case !x.speculative:
		_ = x.s.stream.CloseSend()
	default:
		x.arm()
	}
	return x.read(reply)
}

// open opens the stream. Until the returned function is called the end of ctx
// ends the stream.
func (x *exchange) open(ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption) (stop func() bool, err error) {
	s := x.s
	x.ctx = ctx
	if x.speculative {
		stop = x.detach()
	} else {
		x.own, s.cancel = context.WithCancel(ctx)
		stop = never
	}
	done := x.watch()
	s.stream, err = s.conn.open(x.own, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, cc, s.method.spec, x.options(opts)...)
	done()
	if err != nil {
		return stop, err
	}
	if x.speculative {
		s.stream.Context() // from here on grpc repeats nothing of its own accord
	}
	s.opened.Store(true)
	s.conn.half.opened.Add(1)
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
		left := max(time.Until(deadline), time.Millisecond)
		if s.limit == 0 || left < s.limit {
			s.limit = left
		}
	}
	if left := x.out.attempt.Timeout(); left > 0 {
		x.own, s.cancel = context.WithTimeout(x.own, left)
		s.lease = min(s.lease, left)
	} else {
		x.own, s.cancel = context.WithCancel(x.own)
	}
	return stop
}

// never is a stop function for what does not need one.
func never() bool { return true }

// options returns the call's options, with room for the frame around the
// largest response.
func (x *exchange) options(opts []grpc.CallOption) []grpc.CallOption {
	room := x.s.conn.receive
	if x.limitBytes != defaultReceiveBytes {
		room = grpc.MaxCallRecvMsgSize(x.limitBytes + min(frameOverheadBytes, math.MaxInt-x.limitBytes))
	}
	return append(opts[:len(opts):len(opts)], room)
}

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

// cancelled returns the status of a confirmed call that was given up here.
func (x *exchange) cancelled(why string) error {
	switch {
	case why == limitOver, x.own.Err() == context.DeadlineExceeded:
		return status.FromContextError(context.DeadlineExceeded).Err()
	case x.speculative && x.out.Context.Err() != nil:
		return status.FromContextError(x.out.Context.Err()).Err()
	case x.ctx.Err() == context.Canceled, !x.speculative && x.ctx.Err() != nil:
		return status.FromContextError(x.ctx.Err()).Err()
	}
	return nil
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

// requestFrame is a frame with its parts, allocated at once.
type requestFrame struct {
	frame   specv1.ClientFrame
	oneof   specv1.ClientFrame_Request
	request specv1.Request
}

func (x *exchange) request(payload []byte) *specv1.ClientFrame {
	a, s := x.out.attempt, x.s
	f := new(requestFrame)
	f.frame.Frame, f.oneof.Request = &f.oneof, &f.request
	r := &f.request
	r.Payload, r.CallId, r.Attempt = payload, s.id.call[:], s.id.number
	r.Caller, r.Budget = specv1.CallerState_CALLER_STATE_CONFIRMED, clamp(a.Budget())
	if x.speculative {
		r.Caller = specv1.CallerState_CALLER_STATE_SPECULATIVE
		r.Depth = max(clamp(a.Depth()), 1)
		r.LeaseMs = clamp(int((s.lease + time.Millisecond - 1) / time.Millisecond))
	}
	return &f.frame
}

// arm starts the lease and takes the caller's word.
func (x *exchange) arm() {
	s := x.s
	s.mu.Lock()
	s.armed = true
	if s.word == noWord { // else it was aborted meanwhile
		s.after(s.lease)
	}
	s.mu.Unlock()
	x.out.attempt.OnResolve(s.resolve)
}

// unsent ends an exchange whose request never left.
func (x *exchange) unsent(err error) (bool, string, error) {
	if !x.speculative && x.ctx.Err() != nil {
		return true, "", x.cancelled("")
	}
	if why := x.s.gaveUp(); why != "" {
		return false, why, nil
	}
	return false, fmt.Sprintf("its stream cannot be opened: %v", err), nil
}

// gaveUp returns why the client itself gave the stream up, if it did.
func (s *specStream) gaveUp() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// read reads until there is a result, or none to be had.
func (x *exchange) read(reply proto.Message) (done bool, reason string, err error) {
	frame := new(specv1.ServerFrame)
	for {
		if err := x.s.stream.RecvMsg(frame); err != nil {
			return x.ended(err, reply)
		}
		x.s.beat()
		result, stands, err := x.take(frame, reply)
		if err != nil {
			return x.violation(err)
		}
		if stands {
			x.s.settle()
			return true, "", result.give(reply)
		}
	}
}

// give makes the result that of the call.
func (r result) give(reply proto.Message) error {
	if r.err != nil || r.value == reply {
		return r.err
	}
	if err := fill(reply, r.value); err != nil {
		return status.Errorf(codes.Internal, "specgrpc: copy the response: %v", err)
	}
	return nil
}

// violation ends an exchange with a peer that breaks the protocol.
func (x *exchange) violation(err error) (bool, string, error) {
	s := x.s
	s.conn.cfg.logger.Warn("specgrpc: the server breaks the protocol", "error", err,
		"method", s.method.name, "target", s.conn.cc.Target(), "call", s.id.String())
	s.cancel()
	return x.ended(fmt.Errorf("the server breaks the protocol: %w", err), nil)
}

// ended says what the end of the stream means, without a Final that stands.
func (x *exchange) ended(err error, reply proto.Message) (done bool, reason string, _ error) {
	s := x.s
	s.mu.Lock()
	w, why := s.word, s.why
	s.over = true // no Confirm leaves from here on
	s.mu.Unlock()
	defer s.end()
	switch {
	case x.answers.refused:
		return false, x.refusal, nil
	case x.answers.none() && status.Code(err) == codes.Unimplemented:
		s.method.setUnaware()
		return false, "the server does not speak " + s.method.spec, nil
	case w == confirmed && x.tentative != nil && errors.Is(err, io.EOF):
		return true, "", x.tentative.give(reply)
	case w == confirmed && x.cancelled(why) != nil:
		return true, "", x.cancelled(why)
	case w == confirmed && !s.method.pure:
		return true, "", x.lost(err)
	case why != "":
		return false, why, nil
	default:
		return false, fmt.Sprintf("its stream ended without a result: %v", err), nil
	}
}

// lost is the error of a call that was confirmed and may have taken effect, or
// not: it is never sent again. What the server said of the call itself stands.
func (x *exchange) lost(err error) error {
	s := x.s
	code := status.Code(err)
	switch code {
	case codes.OK, codes.Unknown, codes.Internal, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return status.Errorf(codes.Unavailable, "specgrpc: %s to %s, call %v: outcome unknown: the stream ended after Confirm: %v", s.method.name, s.conn.name(), s.id, err)
	}
	return status.Errorf(code, "specgrpc: %s to %s, call %v: %s", s.method.name, s.conn.name(), s.id, status.Convert(err).Message())
}

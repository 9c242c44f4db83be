package specgrpc

import (
	"context"
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
func (c *ClientConn) speculate(
	ctx context.Context, out *outgoing, req, reply any, cc *grpc.ClientConn, opts []grpc.CallOption, speculative bool,
) (done bool, reason string, err error) {
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
	if len(payload) > c.cfg.maxRequestBytes {
		return false, "its request is larger than WithMaxSpeculativeRequest", nil
	}
	x := newExchange(c, out, opts, speculative, len(payload))
	if speculative {
		if why := c.half.enter(out.attempt, !m.pure); why != (lack{}) {
			return false, why.String(), nil
		}
		c.half.add(x.s)
	}
	out.stream = x.s
	return x.run(ctx, cc, opts, payload, res)
}

// exchange is the conversation over one speculative stream up to the result.
type exchange struct {
	s           *specStream
	again       *attempts // nil if it is speculative
	out         *outgoing
	speculative bool
	policy      policy
	accepts     *int // how large a response the caller's options accept, if they say so
	limitBytes  int  // of a response
	answers     answers
	refusal     string
	beyond      bool      // it names a limit
	full        bool      // of half-open calls
	predictions []result  // in the server's order; errors for what is no response, or too large
	few         [1]result // what they begin with
	tentative   *result
	waited      time.Duration   // by the server, for the caller's word
	ctx, own    context.Context // the interceptors', the stream's
}

// result is what a Final says.
type result struct {
	value proto.Message
	err   error
}

// firmStream is the stream of a caller that was confirmed from the start, with what follows its
// attempts, allocated at once.
type firmStream struct {
	specStream
	again attempts
}

func newExchange(c *ClientConn, out *outgoing, opts []grpc.CallOption, speculative bool, requestBytes int) *exchange {
	a := out.attempt
	x := &exchange{out: out, speculative: speculative, accepts: responseLimit(opts)}
	if speculative {
		x.s = new(specStream)
	} else {
		f := new(firmStream)
		f.word, f.again.conn, f.again.method = confirmed, c, out.call.method.name
		x.s, x.again = &f.specStream, &f.again
	}
	s := x.s
	s.conn, s.method, s.attempt, s.lease = c, out.call.method, a, c.cfg.lease
	s.id = attemptID{call: a.ID(), number: clamp(a.Number())}
	s.reading, s.small = true, requestBytes <= smallRequestBytes
	return x
}

// defaultReceiveBytes is the largest message that grpc receives by default.
const defaultReceiveBytes = 4 << 20

// responseLimit returns the size of the largest response that the caller accepts, nil
// if it does not say.
func responseLimit(opts []grpc.CallOption) (limit *int) {
	for _, o := range opts {
		if o, ok := o.(grpc.MaxRecvMsgSizeCallOption); ok {
			most := o.MaxRecvMsgSize // allocated only if there is one
			limit = &most
		}
	}
	return limit
}

func clamp(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

func (x *exchange) run(
	ctx context.Context, cc *grpc.ClientConn, opts []grpc.CallOption, payload []byte, reply proto.Message,
) (done bool, reason string, err error) {
	if !x.speculative {
		defer x.again.end()
		opts = x.again.follow(opts)
	}
	stop, err := x.ask(ctx, cc, opts, payload)
	defer stop()
	if err != nil {
		x.s.end()
		return x.unsent(err)
	}
	if x.speculative {
		x.arm()
	}
	return x.read(reply)
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
	s.armed, s.asked = true, time.Now()
	if s.word == noWord { // else it was aborted meanwhile
		s.after(s.lease)
	}
	s.mu.Unlock()
	x.out.attempt.OnResolve(s.resolve)
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
		if stands || x.tentative != nil {
			x.s.method.setAware()
		}
		if stands && x.retried(result.err) {
			return x.tryAgain(result.err)
		}
		if x.tentative != nil && x.retried(x.tentative.err) {
			// Its effects are to be undone. If it has Confirm, it is a failed attempt as any.
			x.s.give(aborted, triedAgain(x.tentative.err))
		}
		if stands {
			x.s.settle()
			if !x.speculative {
				x.s.drain(frame) // its end comes with the result, and its context ends with the attempt
			}
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

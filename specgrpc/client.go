package specgrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

// ClientConn is a grpc.ClientConn whose unary calls speculate when they are
// made in a task of foresay. Outside of one it is a grpc.ClientConn. It is safe
// for concurrent use.
type ClientConn struct {
	*callSiteTable
	cc   *grpc.ClientConn
	cfg  clientConfig
	open grpc.Streamer // opens a stream below the user's stream interceptors
	half halfOpen
	// codec is grpc's for protocol buffers; nil if somebody has put an older one in its place.
	codec encoding.CodecV2
	// receive is the option for frames around responses of grpc's default size.
	receive grpc.CallOption

	// Free calls, that found their answer in the record.
	calls sync.Pool
}

var _ grpc.ClientConnInterface = (*ClientConn)(nil)

// NewClient is grpc.NewClient for a connection that speculates. It takes
// grpc.DialOptions and ClientOptions in any order. The unary interceptors among
// them run once per call that is really made, speculative ones included, with
// the method's own name and never with a predicted response; stream
// interceptors do not see speculative streams.
func NewClient(target string, opts ...grpc.DialOption) (*ClientConn, error) {
	c := &ClientConn{cfg: newClientConfig(), receive: grpc.MaxCallRecvMsgSize(defaultReceiveBytes + frameOverheadBytes)}
	var dial []grpc.DialOption
	for _, o := range opts {
		own, ok := o.(ClientOption)
		if !ok {
			dial = append(dial, o)
			continue
		}
		if err := own.applyClient(&c.cfg); err != nil {
			return nil, err
		}
	}
	if encoding.GetCodec("proto") == nil {
		c.codec = encoding.GetCodecV2("proto")
	}
	c.half.room.most = c.cfg.maxHalfOpen
	c.half.room.ready = func() bool { return c.cc.GetState() == connectivity.Ready }
	c.half.room.full = c.makeRoom
	c.half.room.yield = c.half.yield
	ctl, err := c.cfg.theControl()
	if err != nil {
		return nil, err
	}
	c.callSiteTable = newCallSiteTable(ctl, c.cfg.mode, target)
	c.id = fmt.Sprintf("%p", c)
	if err := c.configure(&c.cfg); err != nil {
		return nil, err
	}
	defer func() {
		if c.cc == nil {
			c.callSiteTable.close()
		}
	}()
	if c.open, err = streamer(); err != nil {
		return nil, err
	}
	// The last interceptor of the chain is the innermost.
	c.cc, err = grpc.NewClient(target, append(dial, grpc.WithChainUnaryInterceptor(c.carry))...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// streamer returns grpc's own way to open a stream, which all stream
// interceptors wrap: a speculative stream carries one unary call, around which
// the unary interceptors have run already. grpc hands it to the last interceptor
// of any connection.
func streamer() (grpc.Streamer, error) {
	var inner grpc.Streamer
	probe, err := grpc.NewClient("passthrough:///foresay",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainStreamInterceptor(func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
			s grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			inner = s
			return nil, errProbe
		}))
	if err != nil {
		return nil, fmt.Errorf("specgrpc: find grpc's streamer: %w", err)
	}
	defer probe.Close()
	_, _ = probe.NewStream(context.Background(), &grpc.StreamDesc{}, "/foresay/probe")
	if inner == nil {
		return nil, errors.New("specgrpc: grpc gave an interceptor no streamer")
	}
	return inner, nil
}

var errProbe = errors.New("specgrpc: this connection only finds out how grpc opens streams")

// Invoke makes a unary call. In a task it may return a predicted response at
// once; see package foresay. The errors of a discarded run are foresay's own,
// such as foresay.ErrMisspeculated; all others are statuses.
func (c *ClientConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	m := c.method(method)
	op := driver.Operation{CallSite: m.site}
	if outside, ok := op.Plainly(ctx); ok {
		ctx, w := c.watch(outside, op, m, args, reply, opts)
		err := c.cc.Invoke(ctx, method, args, reply, opts...)
		w.done(reply, err)
		return err
	}
	req, ok := args.(proto.Message)
	res, ok2 := reply.(proto.Message)
	if !ok || !ok2 {
		// Only messages can be compared and copied. Behind a barrier the run is
		// never repeated, so that the call needs no record.
		if err := driver.BarrierBefore(ctx, control.WaitBarrier, method); err != nil {
			return asStatus(err)
		}
		return c.cc.Invoke(ctx, method, args, reply, opts...)
	}
	k, err := c.newCall(ctx, m, req, res, opts)
	if err != nil {
		return err
	}
	value, err := driver.Perform(ctx, &k.op)
	err = k.deliver(value, err, res, opts)
	k.recycle()
	return err
}

// NewStream opens a stream. In a task it waits until the run is confirmed, as
// foresay.Barrier does.
func (c *ClientConn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if err := driver.BarrierBefore(ctx, control.WaitStream, method); err != nil {
		return nil, asStatus(err)
	}
	since := c.half.room.want(ctx)
	relieved := c.relieve()
	stream, err := c.cc.NewStream(ctx, desc, method, opts...)
	relieved()
	c.half.room.got(since, err == nil)
	if err == nil {
		c.half.room.untracked()
		c.half.opened.Add(1)
	}
	return stream, err
}

// asStatus makes the engine's report of an ended context a status, as plain
// calls report it.
func asStatus(err error) error {
	_, known := status.FromError(err)
	switch {
	case known, errors.Is(err, foresay.ErrMisspeculated), errors.Is(err, foresay.ErrDiverged):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &endedError{err, codes.DeadlineExceeded}
	case errors.Is(err, context.Canceled):
		return &endedError{err, codes.Canceled}
	default:
		return err
	}
}

// endedError is the engine's report of an ended context, with the status that a
// plain call reports it by.
type endedError struct {
	error
	code codes.Code
}

func (e *endedError) Error() string              { return e.GRPCStatus().Err().Error() }
func (e *endedError) Unwrap() error              { return e.error }
func (e *endedError) GRPCStatus() *status.Status { return status.New(e.code, e.error.Error()) }

// CallSite returns the call site of a method, for its configuration and statistics.
func (c *ClientConn) CallSite(fullMethod string) *control.CallSite { return c.method(fullMethod).site }

// Control returns what the connection's call sites are switched by.
func (c *ClientConn) Control() *control.Control { return c.control }

// HalfOpen returns how many speculative streams await their caller's word.
func (c *ClientConn) HalfOpen() int { return int(c.half.count.Load()) }

// Close closes the connection. Calls that are under way fail; servers undo what
// was not confirmed.
func (c *ClientConn) Close() error {
	c.callSiteTable.close()
	return c.cc.Close()
}

// Target returns the target given to NewClient.
func (c *ClientConn) Target() string { return c.cc.Target() }

// CanonicalTarget returns the target with its scheme.
func (c *ClientConn) CanonicalTarget() string { return c.cc.CanonicalTarget() }

// GetState returns the connection's state.
func (c *ClientConn) GetState() connectivity.State { return c.cc.GetState() }

// WaitForStateChange waits until the state is another one than source, or ctx
// ends, which it reports by false.
func (c *ClientConn) WaitForStateChange(ctx context.Context, source connectivity.State) bool {
	return c.cc.WaitForStateChange(ctx, source)
}

// Connect leaves the idle state.
func (c *ClientConn) Connect() { c.cc.Connect() }

// ResetConnectBackoff has transient failures retried at once.
func (c *ClientConn) ResetConnectBackoff() { c.cc.ResetConnectBackoff() }

// name tells which connection an error or a log line is about.
func (c *ClientConn) name() string { return strconv.Quote(c.cc.Target()) }

package specgrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

const (
	// maxPredictionBytes is the size of the largest prediction sent: a client
	// with grpc's default limit receives it.
	maxPredictionBytes = 3 << 20
	// maxIdleFrames is how many frames without effect a client may send after
	// its word before it is no longer listened to.
	maxIdleFrames = 8
)

// serverCall is one call over a speculative stream. grpc's goroutine runs the
// handler and ends the stream; a second one listens for the caller's word.
type serverCall struct {
	registrar   *ServiceRegistrar
	method      *serverMethod
	id          attemptID
	stream      grpc.ServerStream
	ctx         context.Context
	cancel      context.CancelCauseFunc
	outer       bufferedStream // what interceptors and the standing run set
	speculative bool
	payload     []byte
	depth       int
	budget      int
	timer       *time.Timer   // the lease
	decided     chan struct{} // closed when the word is given and the handler knows it

	mu      sync.Mutex
	word    word
	why     error            // why the call is undone, as a status
	handler *foresay.Handler // nil until the interceptors let the call pass
	inner   context.Context  // the handler's context and request
	request any

	sending     sync.Mutex
	predictions [][]byte
	final       bool // sent: no Prediction may follow
}

func newServerCall(r *ServiceRegistrar, m *serverMethod, ss grpc.ServerStream, req *specv1.Request, id attemptID) *serverCall {
	c := &serverCall{
		registrar: r, method: m, id: id, stream: ss, ctx: ss.Context(),
		speculative: req.GetCaller() == specv1.CallerState_CALLER_STATE_SPECULATIVE,
		payload:     req.GetPayload(), depth: int(req.GetDepth()), budget: int(req.GetBudget()),
	}
	c.outer.method = m.name
	if c.budget == 0 {
		c.budget = -1 // none, where the engine takes 0 for no limit
	}
	return c
}

// arm readies a call whose caller's word is to come within the lease.
func (c *serverCall) arm(lease time.Duration) {
	c.decided = make(chan struct{})
	if c.registrar.cfg.interceptor != nil {
		// The engine ends the handler's context, but not that of interceptors.
		c.ctx, c.cancel = context.WithCancelCause(c.ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(lease, func() { c.abort(errLease) })
}

func (c *serverCall) disarm() {
	c.timer.Stop()
	c.end(context.Canceled)
}

// end ends the interceptors' context.
func (c *serverCall) end(cause error) {
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// state returns the word and the handler.
func (c *serverCall) state() (word, *foresay.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.word, c.handler
}

// cause returns why the call is undone, or nil.
func (c *serverCall) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// listen takes the caller's word, until the stream ends.
func (c *serverCall) listen() {
	frame := new(specv1.ClientFrame)
	for idle := 0; idle < maxIdleFrames; {
		if err := c.stream.RecvMsg(frame); err != nil {
			if err == io.EOF {
				err = fmt.Errorf("the stream was half-closed without a word")
			}
			c.abort(status.Errorf(codes.Canceled, "specgrpc: undone: %v", err))
			return
		}
		w, err := checkWord(frame, c.id)
		switch {
		case err != nil:
			c.warn("the client breaks the protocol", "error", err)
			if !c.abort(status.Errorf(codes.InvalidArgument, "specgrpc: %s, call %v: %v", c.method.name, c.id, err)) {
				idle++
			}
		case w == confirmed && !c.confirm(), w == aborted && !c.abort(errByCaller):
			idle++
			if given, _ := c.state(); given != w {
				c.warn("a second word contradicts the first", "first", given.String(), "second", w.String())
			}
		}
	}
}

// confirm gives the call the caller's word that its assumptions held. It
// reports whether this is the first word.
func (c *serverCall) confirm() bool {
	c.mu.Lock()
	if c.word != noWord {
		c.mu.Unlock()
		return false
	}
	c.word = confirmed
	h, ctx, req := c.handler, c.inner, c.request
	c.mu.Unlock()
	c.timer.Stop()
	defer close(c.decided)
	if h == nil {
		return true // the handler will find the word
	}
	if err := c.reauthorize(ctx, req); err != nil {
		c.mu.Lock()
		c.why = err
		c.mu.Unlock()
		h.Abort()
		return true
	}
	h.Confirm()
	c.debug("confirmed")
	return true
}

// reauthorize asks whether the call may still take effect.
func (c *serverCall) reauthorize(ctx context.Context, req any) (err error) {
	f := c.registrar.cfg.reauthorize
	if f == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			c.registrar.cfg.logger.Error("specgrpc: reauthorisation panicked", "method", c.method.name, "panic", p, "stack", string(debug.Stack()))
			err = status.Errorf(codes.Internal, "specgrpc: %s: reauthorisation failed", c.method.name)
		}
	}()
	if err := f(ctx, c.method.name, req); err != nil {
		return errorStatus(err).Err()
	}
	return nil
}

// abort undoes the call, for a reason given as a status, unless it has its word
// already, which it reports by false.
func (c *serverCall) abort(why error) bool {
	c.mu.Lock()
	if c.word != noWord {
		c.mu.Unlock()
		return false
	}
	c.word, c.why = aborted, why
	h := c.handler
	c.mu.Unlock()
	c.timer.Stop()
	if h != nil {
		h.Abort()
	}
	c.end(foresay.ErrMisspeculated)
	close(c.decided)
	c.debug("undone", "reason", status.Convert(why).Message())
	return true
}

// tryExecute executes the call for a caller without a word. A panic then counts
// for nothing: if the caller turns out to be right it will make the call plainly.
func (c *serverCall) tryExecute(srv any) (response any, err error, ok bool) { //nolint:revive // ok says whether there is a result at all
	defer func() {
		if ok {
			return
		}
		if w, _ := c.state(); w == confirmed {
			return // let it go on, as in a plain call
		}
		if p := recover(); p != nil {
			c.registrar.cfg.logger.Error("specgrpc: panic of a call whose caller is speculative", "method", c.method.name,
				"call", c.id.String(), "panic", p, "stack", string(debug.Stack()))
		}
		c.abort(status.Errorf(codes.Internal, "specgrpc: %s: the handler did not return", c.method.name))
	}()
	response, err = c.execute(srv)
	return response, err, true
}

// execute runs the interceptors and, inside of them, the handler.
func (c *serverCall) execute(srv any) (any, error) {
	ctx := grpc.NewContextWithServerTransportStream(c.ctx, &c.outer)
	decode := func(v any) error {
		m, ok := v.(proto.Message)
		if !ok {
			return status.Errorf(codes.Internal, "specgrpc: %s: the request is a %T, not a protocol buffer", c.method.name, v)
		}
		if err := proto.Unmarshal(c.payload, m); err != nil {
			return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
		}
		c.payload = nil
		return nil
	}
	interceptor := c.registrar.cfg.interceptor
	return c.method.desc.Handler(srv, ctx, decode, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		run := func(ctx context.Context, req any) (any, error) { return c.handle(ctx, req, handler) }
		if interceptor == nil {
			return run(ctx, req)
		}
		return interceptor(ctx, req, info, run)
	})
}

// handle runs the handler as a task of the caller's.
func (c *serverCall) handle(ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
	h := foresay.NewHandler(ctx, foresay.HandlerConfig{
		Name: c.method.name, Speculative: c.speculative, Replayable: c.method.replayable,
		Depth: c.depth, Budget: c.budget, Limits: c.registrar.cfg.limits, Predicted: c.predicted,
	})
	c.mu.Lock()
	earlier := c.handler
	c.handler, c.inner, c.request = h, ctx, req
	w := c.word
	c.mu.Unlock()
	if earlier != nil {
		earlier.Abort() // an interceptor calls the handler once more
	}
	switch {
	case w == aborted:
		return nil, c.cause()
	case w == confirmed && c.speculative:
		h.Confirm()
	}
	returned := false
	defer func() {
		// A confirmed call that panics runs its hooks, as in a task of Do's.
		if w, _ := c.state(); !returned && w == confirmed {
			_ = h.Finish()
		}
	}()
	value, err := h.Run(func(ctx context.Context) (any, error) { return runHandler(ctx, c.method, req, handler) })
	returned = true
	if !c.speculative {
		if err := h.Finish(); err != nil {
			return nil, errorStatus(err).Err()
		}
	}
	response, err := stands(ctx, value, err)
	if err != nil {
		return nil, errorStatus(err).Err()
	}
	return response, nil
}

// predicted sends an early answer.
func (c *serverCall) predicted(v any) {
	if r, ok := v.(*runResult); ok {
		v = r.response
	}
	m, ok := v.(proto.Message)
	if want := c.method.response; !ok || want != "" && m.ProtoReflect().Descriptor().FullName() != want {
		c.warn("a prediction is not a response of the method", "type", fmt.Sprintf("%T", v))
		return
	}
	b, err := marshal(m)
	if err != nil || len(b) > maxPredictionBytes {
		c.debug("prediction not sent", "bytes", len(b), "error", err)
		return
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.final || len(c.predictions) == maxPredictions || c.indexOf(b) >= 0 {
		return
	}
	c.predictions = append(c.predictions, b)
	_ = c.stream.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{Prediction: &specv1.Prediction{Payload: b}}})
}

// indexOf returns the index of an equal prediction, or -1.
func (c *serverCall) indexOf(b []byte) int {
	return slices.IndexFunc(c.predictions, func(p []byte) bool { return bytes.Equal(p, b) })
}

// finalFrame is a frame with its parts, allocated at once.
type finalFrame struct {
	frame   specv1.ServerFrame
	oneof   specv1.ServerFrame_Final
	final   specv1.Final
	payload specv1.Final_Payload
}

// sendFinal sends the result, an error's status included.
func (c *serverCall) sendFinal(response any, err error, tentative bool) error {
	f := new(finalFrame)
	f.frame.Frame, f.oneof.Final, f.final.Tentative = &f.oneof, &f.final, tentative
	if err == nil {
		if m, ok := response.(proto.Message); !ok {
			err = status.Errorf(codes.Internal, "specgrpc: %s: the response is a %T, not a protocol buffer", c.method.name, response)
		} else if f.payload.Payload, err = marshal(m); err != nil {
			err = status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
		}
	}
	if err != nil {
		b, err := proto.Marshal(errorStatus(err).Proto())
		if err != nil {
			return status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
		}
		f.final.Result = &specv1.Final_Status{Status: b}
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	c.final = true
	if f.final.Result == nil {
		f.final.Result = &f.payload
		if i := c.indexOf(f.payload.Payload); i >= 0 {
			f.final.Result = &specv1.Final_Prediction{Prediction: uint32(i)}
		}
	}
	return c.stream.SendMsg(&f.frame)
}

func (c *serverCall) debug(msg string, args ...any) {
	c.registrar.cfg.logger.Debug("specgrpc: "+msg, append(args, "method", c.method.name, "call", c.id.String())...)
}

func (c *serverCall) warn(msg string, args ...any) {
	c.registrar.cfg.logger.Warn("specgrpc: "+msg, append(args, "method", c.method.name, "call", c.id.String())...)
}

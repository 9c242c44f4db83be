package specgrpc

import (
	"context"
	"runtime/debug"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
)

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
	interceptor := c.interceptor
	return c.method.desc.Handler(srv, ctx, decode, func(ctx context.Context, req any, info *grpc.UnaryServerInfo,
		handler grpc.UnaryHandler) (any, error) {
		run := func(ctx context.Context, req any) (any, error) { return c.handle(ctx, req, handler) }
		if interceptor == nil {
			return run(ctx, req)
		}
		return interceptor(ctx, req, info, run)
	})
}

// panicked is deferred around an engine that runs a handler: what the handler
// panicked with is what recovering interceptors see, as in a plain call. The
// engine's own panic knows where it was.
func (r *ServiceRegistrar) panicked(m *serverMethod) {
	p := recover()
	if p == nil {
		return
	}
	if own, ok := p.(*foresay.PanicError); ok {
		r.cfg.logger.Error("specgrpc: panic of a handler", "method", m.name, "panic", own.Value, "stack", string(own.Stack))
		p = own.Value
	}
	panic(p)
}

// handle runs the handler as a task of the caller's.
func (c *serverCall) handle(ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
	h := driver.NewHandler(ctx, driver.HandlerConfig{
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
		h.Abort() // whoever said it did not know of h yet, and finish waits for h
		return nil, c.cause()
	case w == confirmed && c.speculative:
		h.Confirm()
	}
	defer c.registrar.panicked(c.method)
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

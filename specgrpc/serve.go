package specgrpc

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// The reasons for which a call is undone, as the statuses that its stream ends
// with, once the call is named: see serverCall.named.
var (
	errByCaller = status.Error(codes.Canceled, "the caller said Abort")
	errStopping = status.Error(codes.Aborted, "the server is stopping")
	errLease    = status.Error(codes.Aborted, "no word from the caller for the length of the lease")
)

// serve serves one speculative stream of a method.
func (r *ServiceRegistrar) serve(m *serverMethod, srv any, ss grpc.ServerStream) error {
	frame := new(specv1.ClientFrame)
	r.waiting.Add(1)
	err := ss.RecvMsg(frame)
	r.waiting.Add(-1)
	if err == io.EOF {
		return status.Errorf(codes.InvalidArgument, "specgrpc: %s: the stream ended before Request", m.name)
	} else if err != nil {
		return err
	}
	req, id, err := checkRequest(frame)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "specgrpc: %s: %v", m.name, err)
	}
	c := newServerCall(r, m, ss, req, id)
	guards, ok := r.guarded(m)
	if !ok {
		return c.refuse(r.unknown("the server has taken no plain call yet: its interceptors are not known"))
	}
	c.interceptor = guards.interceptor
	if !c.speculative {
		return c.serveConfirmed(srv)
	}
	if !m.obeys.Load() {
		return c.refuse(r.unknown("its handler has not called an interceptor so far, so that nothing would hold its " +
			"effects back"))
	}
	// From admit on GracefulStop may abort the call.
	c.arm(r.leaseOf(req))
	defer c.disarm()
	if refused := r.admit(c, req); refused != nil {
		return c.refuse(refused)
	}
	defer r.leave(c)
	return c.serveSpeculative(srv)
}

// growStack has the goroutine's stack grown at once to what a call needs, before there
// are frames to be moved with it.
//
//go:noinline
func growStack(i int) byte {
	var room [3 << 10]byte
	room[i] = 1
	return room[1-i]
}

// admit decides whether a call runs for a speculative caller, and takes a place for it.
func (r *ServiceRegistrar) admit(c *serverCall, req *specv1.Request) *specv1.Refused {
	by := r.cfg.callerOf(c.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := &r.admitted.stats
	refuse := func(count *int64, reason specv1.Refused_Reason, format string, args ...any) *specv1.Refused {
		*count++
		return &specv1.Refused{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
	const limit = specv1.Refused_REASON_LIMIT
	switch {
	case !c.method.admitted:
		return refuse(&stats.RefusedEffects, specv1.Refused_REASON_EFFECTS,
			"%s is declared neither free of side effects nor as staging them", c.method.name)
	case int64(req.GetDepth()) > int64(r.cfg.maxDepth):
		return refuse(&stats.RefusedLimit, limit, "its caller stands on %d assumptions, at most %d", req.GetDepth(),
			r.cfg.maxDepth)
	case len(req.GetPayload()) > r.cfg.maxPayload:
		return refuse(&stats.RefusedLimit, limit, "its request has %d bytes, at most %d", len(req.GetPayload()),
			r.cfg.maxPayload)
	case r.stopping:
		return refuse(&stats.RefusedStopping, specv1.Refused_REASON_STOPPING, "the server is stopping")
	}
	if count, why := r.admitted.take(c, by, &r.cfg); count != nil {
		return refuse(count, specv1.Refused_REASON_FULL, "%s", why)
	}
	stats.Admitted++
	return nil
}

// unknown refuses a call since nobody knows yet what runs around its method.
func (r *ServiceRegistrar) unknown(why string) *specv1.Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admitted.stats.RefusedUnknown++
	return &specv1.Refused{Reason: specv1.Refused_REASON_UNKNOWN, Detail: why}
}

// refuse ends a call that did not run.
func (c *serverCall) refuse(why *specv1.Refused) error {
	c.debug("refused", "reason", why.GetReason().String(), "detail", why.GetDetail())
	return c.stream.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Refused{Refused: why}})
}

func (r *ServiceRegistrar) leave(c *serverCall) {
	if c.cause() != nil && c.out.unread() {
		r.unread.Store(time.Now().UnixNano())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admitted.give(c)
}

// HalfOpen returns how many calls of speculative callers are under way.
func (r *ServiceRegistrar) HalfOpen() int { return r.Stats().HalfOpen }

// Stats returns what became of calls of speculative callers.
func (r *ServiceRegistrar) Stats() ServerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.admitted.stats
	out.HalfOpen = len(r.admitted.calls)
	return out
}

func (r *ServiceRegistrar) leaseOf(req *specv1.Request) time.Duration {
	if ms := req.GetLeaseMs(); ms > 0 {
		return min(r.cfg.lease, time.Duration(ms)*time.Millisecond)
	}
	return r.cfg.lease
}

// serveConfirmed serves a caller that stands on no assumption and wants
// predictions: an ordinary call but for them.
func (c *serverCall) serveConfirmed(srv any) error {
	c.word = confirmed
	response, err := c.execute(srv)
	if err := c.sendFinal(response, err, false); err != nil {
		return err
	}
	c.setTrailer()
	return nil
}

// setTrailer has the stream end with the metadata that the handler set.
func (c *serverCall) setTrailer() {
	if md := c.outer.all(); md.Len() > 0 {
		c.stream.SetTrailer(md)
	}
}

// serveSpeculative serves a caller whose word is still to come. Only an
// explicit Confirm confirms: whatever else ends the stream undoes the call.
func (c *serverCall) serveSpeculative(srv any) error {
	go c.listen()
	defer c.tellAfter()
	defer c.markUndone()
	response, err, ok := c.tryExecute(srv)
	if !ok {
		return c.cause()
	}
	if err := c.answer(response, err); err != nil {
		return err
	}
	c.setTrailer()
	return nil
}

// markUndone has the stream of a call that was undone say so. A Confirm that
// comes too late finds out that it was not heard.
func (c *serverCall) markUndone() {
	if w, _ := c.state(); w == aborted {
		c.stream.SetTrailer(metadata.Pairs(undoneTrailer, "1"))
	}
}

// answer sends the result and waits for the caller's word, or the other way
// round if the word came first: then the result stands when it is sent.
func (c *serverCall) answer(response any, err error) error {
	w, h := c.state()
	if w == confirmed {
		if err := c.finish(); err != nil {
			return err
		}
		return c.sendFinal(response, err, false)
	}
	if w == noWord {
		tentative := h != nil && (c.method.staged || h.Tentative() || c.registrar.cfg.reauthorize != nil)
		if err := c.sendFinal(response, err, tentative); err != nil {
			c.abort(err)
		}
	}
	err = c.finish()
	if h != nil && h.Hooks() > 0 {
		c.stream.SetTrailer(metadata.Pairs(hooksTrailer, strconv.FormatInt(h.Hooks().Microseconds(), 10)))
	}
	return err
}

// finish waits for the caller's word and makes it come true. It returns nil if
// the call is confirmed and its hooks ran.
func (c *serverCall) finish() error {
	<-c.decided
	w, h := c.state()
	var err error
	if h != nil {
		err = h.Finish()
	}
	if cause := c.cause(); cause != nil {
		return cause
	}
	if w == confirmed && err != nil {
		return errorStatus(err).Err()
	}
	return nil
}

// errorStatus is the status that a plain call would end with on err.
func errorStatus(err error) *status.Status {
	st, ok := status.FromError(err)
	switch {
	case errors.Is(err, foresay.ErrDiverged):
		return status.New(codes.Internal, err.Error())
	case !ok:
		return status.FromContextError(err)
	case st.Code() == codes.OK: // an error all the same
		return status.New(codes.Unknown, err.Error())
	}
	return st
}

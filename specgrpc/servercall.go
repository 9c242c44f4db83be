package specgrpc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	"github.com/foresay/foresay/driver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// maxIdleFrames is how many frames without effect a client may send after its
// word before it is no longer listened to.
const maxIdleFrames = 8

// serverCall is one call over a speculative stream. grpc's goroutine runs the
// handler and ends the stream; a second one listens for the caller's word.
type serverCall struct {
	registrar   *ServiceRegistrar
	method      *serverMethod
	id          attemptID
	stream      grpc.ServerStream
	ctx         context.Context
	cancel      context.CancelCauseFunc
	outer       bufferedStream              // what interceptors and the standing run set
	interceptor grpc.UnaryServerInterceptor // the server's; nil for none
	speculative bool
	payload     []byte
	depth       int
	budget      int
	timer       *time.Timer   // the lease
	decided     chan struct{} // closed when the word is given and the handler knows it

	mu      sync.Mutex
	word    word
	why     error           // why the call is undone, as a status
	handler *driver.Handler // nil until the interceptors let the call pass
	inner   context.Context // the handler's context and request
	request any
	after   []func(confirmed bool) // see AfterWord
	told    bool                   // they were called

	out outbox
	// Under the outbox's mutex.
	predictions    [][]byte
	fewPredictions [1][]byte // what they begin with
	final          bool      // posted: no Prediction may follow
}

func newServerCall(
	r *ServiceRegistrar, m *serverMethod, ss grpc.ServerStream, req *specv1.Request, id attemptID,
) *serverCall {
	c := &serverCall{
		registrar: r, method: m, id: id, stream: ss, ctx: ss.Context(),
		speculative: req.GetCaller() == specv1.CallerState_CALLER_STATE_SPECULATIVE,
		payload:     req.GetPayload(), depth: int(req.GetDepth()), budget: int(req.GetBudget()),
	}
	if c.speculative {
		c.ctx = context.WithValue(c.ctx, serverCallKey{}, c)
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
	if c.interceptor != nil {
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
func (c *serverCall) state() (word, *driver.Handler) {
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
			c.abort(status.Error(codes.Canceled, err.Error()))
			return
		}
		w, err := checkWord(frame, c.id)
		switch {
		case err != nil:
			c.warn("the client breaks the protocol", "error", err)
			if !c.abort(status.Error(codes.InvalidArgument, err.Error())) {
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
			c.registrar.cfg.logger.Error("specgrpc: reauthorisation panicked", "method", c.method.name, "panic", p, "stack",
				string(debug.Stack()))
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
	c.word, c.why = aborted, c.named(why)
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

// named is the status of a call that is undone: it names the call and its caller.
// A caller that undid it knows, and is not sent the names for each wrong guess.
func (c *serverCall) named(why error) error {
	if why == errByCaller {
		return why
	}
	caller := "an unknown peer"
	if p, ok := peer.FromContext(c.stream.Context()); ok && p.Addr != nil {
		caller = p.Addr.String()
	}
	st := status.Convert(why)
	return status.Errorf(st.Code(), "specgrpc: %s, call %v of %s: undone: %s", c.method.name, c.id, caller, st.Message())
}

func (c *serverCall) debug(msg string, args ...any) {
	if l := c.registrar.cfg.logger; l.Enabled(context.Background(), slog.LevelDebug) {
		l.Debug("specgrpc: "+msg, append(args, "method", c.method.name, "call", c.id.String())...)
	}
}

func (c *serverCall) warn(msg string, args ...any) {
	c.registrar.cfg.logger.Warn("specgrpc: "+msg, append(args, "method", c.method.name, "call", c.id.String())...)
}

type serverCallKey struct{}

// AfterWord is for interceptors that account for what a server does. It has f
// called when the word of the caller on the call that ctx belongs to has come
// true: with true when the call is confirmed and its hooks ran, with false when it
// is undone. f is called once, at once if that has happened already, and must be
// quick. AfterWord returns false, and never calls f, if the call's caller is not
// speculative: then the handler's return is the end of it.
func AfterWord(ctx context.Context, f func(confirmed bool)) bool {
	c, _ := ctx.Value(serverCallKey{}).(*serverCall)
	if c == nil {
		return false
	}
	c.mu.Lock()
	told, stands := c.told, c.stands()
	if !told {
		c.after = append(c.after, f)
	}
	c.mu.Unlock()
	if told {
		f(stands)
	}
	return true
}

// stands reports whether the call was confirmed and not refused after that. Under mu.
func (c *serverCall) stands() bool { return c.word == confirmed && c.why == nil }

// tellAfter tells what became of a call that is over.
func (c *serverCall) tellAfter() {
	c.mu.Lock()
	after, stands := c.after, c.stands()
	c.after, c.told = nil, true
	c.mu.Unlock()
	for _, f := range after {
		f(stands)
	}
}

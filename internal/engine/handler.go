package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/report"
)

// HandlerConfig describes a server's handling of one call to a transport's
// server side.
type HandlerConfig struct {
	// Name names the task in reports and logs: the full method.
	Name string
	// Speculative says that the caller stands on an open assumption: Confirm or
	// Abort must follow.
	Speculative bool
	// Replayable says that the function may be run again, so that its nested
	// calls may return predictions.
	Replayable bool
	// Depth is how many open assumptions the caller stands on.
	Depth int
	// Budget is how many runs beyond the first the caller grants, if positive;
	// negative for none, 0 if it set no limit.
	Budget int
	Limits control.Limits
	Logger *slog.Logger
	Report func(*report.Report)
	// Predicted is told of early answers, one at a time, in order: those given
	// to Predict, and results of runs that stand on predictions of their own.
	// It is not called after Run has returned.
	Predicted func(v any)
}

// Handler is a server's handling of one call, as a task whose caller may be
// speculative. One that is neither for a speculative caller nor replayable has
// nothing to record: it is no task, and its function runs as in a plain call, but
// that it may predict. [SpecRPC §3.1, RPC objects]
type Handler struct {
	ctx      handlerContext
	task     *task // nil if it is none
	cfg      HandlerConfig
	effects  bool       // the winner made calls with side effects
	offers   sync.Mutex // held while Predicted is called
	answered bool       // Run has returned: no more early answers
	hooks    time.Duration
}

type handlerKey struct{}

// handlerContext is a call's context with its handler.
type handlerContext struct {
	context.Context
	handler *Handler
}

func (c *handlerContext) Value(key any) any {
	if key == (handlerKey{}) {
		return c.handler
	}
	return c.Context.Value(key)
}

// NewHandler returns a handler that has not begun. ctx is the call's.
func NewHandler(ctx context.Context, cfg HandlerConfig) *Handler {
	h := &Handler{cfg: cfg}
	h.ctx = handlerContext{ctx, h}
	if !cfg.Speculative && !cfg.Replayable {
		return h
	}
	t := newTask(&h.ctx, nil)
	own := *t.cfg
	own.name, own.limits, own.report = cfg.Name, cfg.Limits, cfg.Report
	if cfg.Logger != nil {
		own.logger = cfg.Logger
	}
	t.cfg = &own
	t.setUp(spectree.Config{Depth: cfg.Depth, CallerOpen: cfg.Speculative, Replayable: cfg.Replayable})
	if t.rec != nil {
		t.rec.speculative = cfg.Speculative
	}
	if cfg.Speculative && !t.ledger.counted { // its caller is to know what it waited for
		t.ledger.counted, t.ledger.start = true, now()
	}
	h.task = t
	h.task.tree.Grant(cfg.Budget)
	h.task.out = h
	h.task.final = make(chan struct{})
	h.task.inline = !cfg.Replayable
	return h
}

// Run runs f and returns its result once it depends on no guess of f's own:
// that is the final answer if the caller is right. A panic of the run that
// stands is raised again here. If the call is aborted or ctx ends meanwhile, Run
// returns the reason; it does not wait for code that ignores its context, except
// for a function that is not replayable, which runs in the calling goroutine.
func (h *Handler) Run(f func(ctx context.Context) (any, error)) (any, error) {
	t := h.task
	if t == nil {
		defer h.silence()
		return f(&h.ctx)
	}
	t.fn = function[any](f)
	t.mu.Lock()
	if t.tree.Over() {
		t.mu.Unlock()
		return nil, t.err
	}
	r := t.tree.Start()
	t.unlock()
	if !h.cfg.Replayable {
		r.Data.(*run).execute()
	}
	select {
	case <-t.final:
	case <-t.ctx.Done():
		t.cancelled()
		<-t.final
	}
	h.silence()
	t.mu.Lock()
	w, err := t.winner, t.err
	if w != nil {
		h.effects = w.tree.HasEffects()
		if h.cfg.Speculative {
			t.ledger.callers = t.callersWait()
		}
	}
	t.mu.Unlock()
	if w == nil {
		return nil, err
	}
	return w.outcome()
}

// Waited returns, after Run, how much longer Run took because the call waited for its
// caller's word: at barriers, and with what is held back until then. It is negative if Run took
// less, as the handler did not wait for effects that are held back.
func (h *Handler) Waited() time.Duration {
	if h.task == nil {
		return 0
	}
	h.task.mu.Lock()
	defer h.task.mu.Unlock()
	return h.task.ledger.callers
}

// Hooks returns, after Finish, how long the call's commit hooks took.
func (h *Handler) Hooks() time.Duration { return h.hooks }

// silence has no more early answers told of.
func (h *Handler) silence() {
	h.offers.Lock()
	defer h.offers.Unlock()
	h.answered = true
}

// Tentative reports, after Run, whether the result stands only once Finish
// returned nil: the run made calls with side effects. A method that is declared
// to stage its effects is tentative whatever its run did; hooks alone, of a
// method free of side effects, cannot change a result.
func (h *Handler) Tentative() bool { return h.effects }

// Confirm tells that the caller was right. Only the first of Confirm and Abort counts.
func (h *Handler) Confirm() {
	t := h.task
	if t == nil {
		return
	}
	t.mu.Lock()
	t.tree.ConfirmCaller()
	t.unlock()
}

// Abort tells that the caller was wrong, gave up or is lost. After Confirm it
// does nothing; a confirmed call ends like any other, by its context.
func (h *Handler) Abort() {
	t := h.task
	if t == nil {
		return
	}
	t.mu.Lock()
	if t.tree.Caller() == spectree.CallerOpen {
		t.tree.RefuteCaller()
		t.fail(ErrMisspeculated)
	}
	t.unlock()
}

// Finish waits, after Run, for the caller's word. It returns nil once the call
// is confirmed and its commit hooks ran, and otherwise the reason why it is undone.
func (h *Handler) Finish() error {
	t := h.task
	if t == nil {
		return nil
	}
	select {
	case <-t.done:
	case <-t.ctx.Done():
		t.cancelled()
		<-t.done
	}
	defer t.reported()
	if t.err != nil {
		return t.err
	}
	defer t.winner.ctx.cancel(context.Canceled)
	if t.winner.hooked {
		began := now()
		defer func() { h.hooks = now().sub(began) }()
	}
	t.winner.release()
	return nil
}

func (h *Handler) offer(r *run) {
	if r.failed == nil && !r.goexit && r.err == nil {
		h.predicted(r.value)
	}
}

func (h *Handler) withdraw(*run) {} // a client is told by the final answer

func (h *Handler) complete(*run, error) {}

func (h *Handler) predicted(v any) {
	h.offers.Lock()
	defer h.offers.Unlock()
	if h.cfg.Predicted != nil && !h.answered {
		h.cfg.Predicted(v)
	}
}

// Predict is foresay.Predict.
func Predict(ctx context.Context, response any) error {
	h, _ := ctx.Value(handlerKey{}).(*Handler)
	if h == nil {
		return nil
	}
	if l := laneOf(ctx); l != nil {
		t := l.run.task
		t.mu.Lock()
		if err := l.run.check(); err != nil {
			return err
		}
		t.mu.Unlock()
	} else if h.task != nil { // code that the task does not follow
		return nil
	}
	h.predicted(response)
	return nil
}

package replica

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

// Reader reads from an authority, ahead of it. It is safe for concurrent use.
type Reader[Req, Resp any] struct {
	cfg  Config[Req, Resp]
	site *control.CallSite
	name string // tells it from other readers
}

// New validates the configuration.
func New[Req, Resp any](cfg Config[Req, Resp]) (*Reader[Req, Resp], error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Reader[Req, Resp]{cfg: cfg}
	r.name = fmt.Sprintf("replica@%p", r)
	site := control.CallSiteConfig{
		Name: cfg.Name, Mode: cfg.Mode, Share: cfg.Share, Effect: control.EffectNone, Ordered: cfg.Ordered,
		Limits:            cfg.Limits,
		ServerPredictions: true, // the near answer comes with the attempt, as a server's would
	}
	var err error
	if cfg.Control != nil {
		r.site, err = cfg.Control.NewCallSite(site, r.name)
	} else {
		r.site, err = control.NewCallSite(site)
	}
	if err != nil {
		return nil, fmt.Errorf("replica: %w", err)
	}
	return r, nil
}

// CallSite returns the call site of the reads, with its statistics.
func (r *Reader[Req, Resp]) CallSite() *control.CallSite { return r.site }

// Read returns the near replica's answer at once, in a task, and the run that
// uses it depends on the authority's being equal; or it returns the authority's
// answer. The error is the authority's, one of the engine's (see driver.Perform)
// or wraps ctx's. It panics with a *foresay.PanicError if Far did, in a task.
func (r *Reader[Req, Resp]) Read(ctx context.Context, request Req) (Resp, error) {
	if !driver.InTask(ctx) {
		return r.cfg.Far(ctx, request)
	}
	a := &asking[Req, Resp]{reader: r, request: request}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: r.site, Conn: r.name, Identity: r.cfg.Key(request), Request: request, CanSpeculate: true, Transport: a,
	})
	if err != nil {
		var failed *foresay.PanicError
		if errors.As(err, &failed) && errors.Is(err, errPanicked) {
			panic(failed)
		}
		var none Resp
		return none, err
	}
	answer, _ := v.(Resp) // not ok for a nil of an interface type
	return r.cfg.Copy(answer), nil
}

// errPanicked marks a panic of Far, among errors that Far returned.
var errPanicked = errors.New("replica: Far panicked")

// asking carries one read.
type asking[Req, Resp any] struct {
	reader  *Reader[Req, Resp]
	request Req
}

// Keep copies the request: the caller may change it once it has the near answer.
func (q *asking[Req, Resp]) Keep() {
	if kept, ok := own(q.request).(Req); ok {
		q.request = kept
	}
}

func (q *asking[Req, Resp]) Start(ctx context.Context, a *driver.Attempt) {
	near := make(chan struct{})
	nearCtx, stop := context.WithCancel(ctx)
	if a.MayPredict() {
		go func() {
			defer close(near)
			q.near(nearCtx, a)
		}()
	} else {
		close(near)
	}
	go func() {
		v, err := any(nil), errors.New("replica: Far ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				v, err = nil, errors.Join(errPanicked, &foresay.PanicError{Value: p, Stack: debug.Stack()})
			}
			a.Finish(v, err)
			stop()
			<-near
		}()
		v, err = q.reader.cfg.Far(ctx, q.request)
	}()
}

// near offers the near answer. A replica that fails, or panics, has none.
func (q *asking[Req, Resp]) near(ctx context.Context, a *driver.Attempt) {
	defer func() { _ = recover() }()
	if v, err := q.reader.cfg.Near(ctx, q.request); err == nil && ctx.Err() == nil {
		a.Predict(v)
	}
}

func (q *asking[Req, Resp]) Equal(prediction, actual any) bool {
	near, ok := prediction.(Resp)
	far, ok2 := actual.(Resp)
	return ok && ok2 && q.reader.cfg.Equal(near, far)
}

func (q *asking[Req, Resp]) Same(a, b any) bool { return same(a, b) }

func (q *asking[Req, Resp]) Accept(prediction any) (any, bool) {
	answer, ok := prediction.(Resp)
	if !ok {
		return nil, false
	}
	return q.reader.cfg.Copy(answer), true
}

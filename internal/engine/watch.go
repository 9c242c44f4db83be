package engine

import (
	"context"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/usercode"
)

// Digester is driver.Digester.
type Digester interface {
	Transport
	RequestDigest(ctx context.Context) uint64
	ResponseDigest(response any) (digest uint64, ok bool)
}

// guessing is what a call would have been predicted, by predictors that change
// nothing.
type guessing struct {
	values []any
	asked  uint64 // the request's digest, if the call site has no predictors
	digest uint64 // of the last response
	known  bool   // there was one
	late   bool   // it could not be told before the call
	own    bool   // the values are those of the only predictor, which learns changes

	// Once the actual response is in.
	right    bool
	answered uint64 // its digest
	told     bool   // it has one

	shared sharing // if all callers got the same response
}

// compares reports whether there is anything to find out.
func (g *guessing) compares() bool {
	return len(g.values) > 0 || g.asked != 0 || g.late || g.shared.asked != 0
}

// kept returns it for a call to keep, or nil if there is nothing to find out.
func (g *guessing) kept() *guessing {
	if !g.compares() {
		return nil
	}
	k := *g
	return &k
}

func (g *guessing) guessed() bool { return len(g.values) > 0 || g.known }

// guess asks the predictors, for comparison only.
func (op *Operation) guess(ctx context.Context) (g guessing) {
	s := op.CallSite.Engine()
	if op.Observed {
		return g
	}
	if len(s.Config().Predictors) == 0 && len(offered(ctx)) == 0 {
		if d, ok := op.Transport.(Digester); ok {
			g.asked = d.RequestDigest(ctx)
			g.digest, g.known = s.Repeats().Last(g.asked)
			g.late = g.asked == 0
			g.shared.ask(op)
		}
		return g
	}
	g.values = op.collect(ctx)
	if len(s.Config().Predictors) == 1 && len(offered(ctx)) == 0 {
		_, g.own = s.Config().Predictors[0].(control.ChangeLearner)
	}
	return g
}

// compare finds out whether the actual response was among the guesses. It runs
// code of the user's.
func (g *guessing) compare(ctx context.Context, op *Operation, v any, err error) {
	s := op.CallSite.Engine()
	if err != nil || !g.compares() {
		return
	}
	right := false
	for _, p := range g.values {
		usercode.Contain(s.Config().Name, nil, "equivalence", func() { right = op.Transport.Equal(p, v) })
		if right {
			break
		}
	}
	d, ok := op.Transport.(Digester)
	if ok && g.late {
		g.asked = d.RequestDigest(ctx)
	}
	if ok && g.asked != 0 {
		if g.answered, g.told = d.ResponseDigest(v); g.told {
			right = g.known && g.answered == g.digest
		}
	}
	if answered, told := g.shared.compare(op, v); told {
		s.Shared().Note(g.shared.asked, answered)
	}
	g.right = right
}

// count counts a comparison of a call that counts, and remembers the response for
// call sites without predictors.
func (g *guessing) count(s *control.CallSite) {
	if g.told {
		s.Engine().Repeats().Note(g.asked, g.answered)
	}
	switch {
	case !g.guessed():
	case g.right:
		s.Engine().Counts().WouldBeRight.Add(1)
	default:
		s.Engine().Counts().WouldBeWrong.Add(1)
	}
}

// learn tells the predictors of a confirmed response.
func (op *Operation) learn(ctx context.Context, g *guessing, v any) {
	s := op.CallSite.Engine()
	if len(s.Config().Predictors) == 0 || g != nil && g.right && g.own && s.Config().Equal == nil {
		return
	}
	s.Counts().Learnt.Add(1)
	ctx = op.asking(ctx)
	for _, p := range s.Config().Predictors {
		usercode.Contain(s.Config().Name, nil, "predictor", func() { p.Learn(ctx, op.Request, v) })
	}
}

// Watched is a call of plain code that is observed. The zero value is ready, and
// is so again after Done.
type Watched struct {
	ctx   context.Context
	op    Operation
	req   *control.Request
	mode  control.Mode
	start time.Time
	guess guessing
	task  int // as of CallRecord
}

// Begin begins to observe a call that is made plainly, see Operation.Plainly, and changes
// nothing about it: its predictors are asked, and compared with the actual
// response when Done is called. Only the Operation's CallSite, Request, Observed and
// Transport are used. It returns false if there is nothing to observe; then Done
// must not be called.
func (w *Watched) Begin(ctx context.Context, op Operation) bool {
	s := op.CallSite
	w.task = 0
	if op.light != nil {
		w.task = op.light.number
		s.Engine().Counts().Calls.Add(1)
		s.Engine().Counts().Sent.Add(1)
	} else {
		s.Engine().Counts().Plain.Add(1)
	}
	w.ctx, w.op, w.req, w.mode = ctx, op, control.RequestOf(ctx), control.ModeObserve
	if s.Engine().Off() {
		if w.req == nil {
			*w = Watched{}
			return false
		}
		w.mode = control.ModeOff
	}
	if w.mode != control.ModeOff && (op.light == nil || s.Engine().Samples()) {
		w.guess = w.op.guess(ctx)
	}
	w.start = time.Now()
	return true
}

// Done tells the call's actual result.
func (w *Watched) Done(v any, err error) {
	end, s := time.Now(), w.op.CallSite
	if w.mode != control.ModeOff {
		w.guess.compare(w.ctx, &w.op, v, err)
		w.guess.count(s)
		if err == nil && !w.op.Observed {
			w.op.learn(w.ctx, &w.guess, v)
		}
	}
	if w.op.light != nil { // there may be no task to do it
		if c := s.Engine().Due(); c != nil {
			c.Engine().Judge()
		}
	}
	if r := w.req; r != nil {
		r.Engine().AddCall(control.CallRecord{
			CallSite: s.Engine().Config().Name, Effect: s.Engine().Config().Effect, Mode: w.mode,
			Start: w.start.Sub(r.Engine().Start()), End: end.Sub(r.Engine().Start()),
			Guessed: w.guess.guessed(), Digest: w.guess.asked != 0, Right: w.guess.right, Failed: err != nil, Peer: w.op.Peer,
			Ordered: s.Engine().Config().Ordered, SendPlainly: s.Engine().Config().SendPlainly,
			SharedGuessed: w.guess.shared.known, SharedRight: w.guess.shared.right, Task: w.task,
		})
	}
	*w = Watched{}
}

// PublicDigester is driver.PublicDigester.
type PublicDigester interface {
	Digester
	PublicDigest() uint64
}

// sharing is what a call would have been predicted if all callers got the same
// response.
type sharing struct {
	asked  uint64 // the request's digest
	digest uint64 // of the last response
	known  bool   // there was one
	right  bool
}

// ask looks for the last response to the same request.
func (g *sharing) ask(op *Operation) {
	if d, ok := op.Transport.(PublicDigester); ok {
		g.asked = d.PublicDigest()
		g.digest, g.known = op.CallSite.Engine().Shared().Last(g.asked)
	}
}

// compare finds out whether it would have been right.
func (g *sharing) compare(op *Operation, v any) (answered uint64, told bool) {
	d, ok := op.Transport.(PublicDigester)
	if !ok || g.asked == 0 {
		return 0, false
	}
	answered, told = d.ResponseDigest(v)
	g.right = told && g.known && answered == g.digest
	return answered, told
}

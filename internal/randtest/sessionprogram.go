package randtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
)

// This file has random programs most of whose calls are predicated: see sessionworld.go for where
// they run.

// sessionMove is a step of such a program.
type sessionMove struct {
	kind    moveKind
	session int
	keys    []string // one of them, by the digest
	n       int      // what is added; by the digest if it is negative
	guess   int      // how far the code's guess is off; noOffer: it has none
	bodies  [][]sessionMove
	pause   time.Duration
}

type moveKind uint8

const (
	moveAdd     moveKind = iota
	moveLook             // a read of another service
	movePost             // a write there
	moveBranch           // one of two bodies, by the digest
	moveGroup            // bodies in goroutines
	moveFuture           // a look in a future, with a guess at what it comes to
	moveThen             // a body on a future of that kind
	moveBarrier          // and an effect behind it
	moveAct
	moveSleep
)

const noOffer = -100

// sessionProgram is a program, and how its world behaves.
type sessionProgram struct {
	seed     uint64
	moves    []sessionMove
	turns    int           // of a loop; 0: it is one task, or
	chained  bool          // two, of which the second depends on the first
	sessions int           // the last one is with a service of its own, if there are several
	equal    bool          // calls that ask for the same are equal calls, wherever the code makes them
	early    bool          // the services reply early
	lies     int           // of 100 early replies
	retries  int           // of 100 requests that are right to be carried out
	cancel   time.Duration // of the task's context; 0: never
	limits   control.Limits
}

func newSessionProgram(seed uint64) *sessionProgram {
	g := &sessionGenerator{rand.New(rand.NewPCG(seed, 0x5e55)), 8 + int(seed%9), 0}
	p := &sessionProgram{seed: seed, sessions: 1 + g.IntN(2), equal: g.IntN(4) == 0, early: g.IntN(3) > 0}
	if g.IntN(2) == 0 {
		p.lies, p.retries = 10, 5
	}
	g.sessions = p.sessions
	p.moves = g.body([]string{"a", "b", "c", "d"})
	if g.IntN(3) == 0 {
		p.turns = 1 + g.IntN(8)
	}
	if g.IntN(4) == 0 {
		p.cancel = time.Duration(1+g.IntN(200)) * time.Millisecond
	}
	if g.IntN(2) == 0 {
		p.limits = control.Limits{Depth: 1 + g.IntN(12), Width: 1 + g.IntN(4), Replays: 1 + g.IntN(12)}
	}
	p.chained = p.turns == 0 && g.IntN(4) == 0
	return p
}

// sessionGenerator makes moves.
type sessionGenerator struct {
	*rand.Rand
	left     int
	sessions int
}

func (g *sessionGenerator) body(keys []string) []sessionMove {
	var out []sessionMove
	for range 2 + g.IntN(5) {
		if g.left--; g.left < 0 {
			break
		}
		m := sessionMove{session: g.IntN(g.sessions), keys: keys, n: g.IntN(4), guess: noOffer}
		if g.IntN(2) == 0 {
			m.keys = keys[g.IntN(len(keys)):][:1]
		}
		if g.IntN(3) == 0 {
			m.n = -1
		}
		switch g.IntN(5) {
		case 0, 1:
			m.guess = 0
		case 2:
			m.guess = 1
		}
		switch k := g.IntN(20); {
		case k < 9:
			m.kind = moveAdd
		case k < 11:
			m.kind = moveLook
		case k < 12:
			m.kind = movePost
		case k < 14:
			m.kind, m.bodies = moveBranch, [][]sessionMove{g.body(keys), g.body(keys)}
		case k < 16 && len(keys) > 1:
			m.kind = moveGroup
			m.bodies = [][]sessionMove{g.body(keys[:len(keys)/2]), g.body(keys[len(keys)/2:])}
		case k < 17 && m.n != 3:
			m.kind = moveFuture
		case k < 17:
			m.kind, m.bodies = moveThen, [][]sessionMove{g.body(keys)}
		case k < 18:
			m.kind = []moveKind{moveBarrier, moveAct}[g.IntN(2)]
		default:
			m.kind, m.pause = moveSleep, time.Duration(g.IntN(20))*time.Millisecond
		}
		out = append(out, m)
	}
	return out
}

// run runs the program and returns what it comes to.
func (w *sessionWorld) run(ctx context.Context) (int, error) {
	limits := foresay.WithLimits(w.p.limits)
	if w.p.chained {
		return w.chain(ctx, limits)
	}
	if w.p.turns == 0 {
		f := func(ctx context.Context) (int, error) { return w.body(ctx, "", w.p.moves, 1) }
		if w.plain {
			return f(ctx)
		}
		return foresay.Do(ctx, f, limits)
	}
	type state struct{ turn, digest int }
	step := func(ctx context.Context, s state) (state, bool, error) {
		digest, err := w.body(ctx, fmt.Sprint(s.turn), w.p.moves, s.digest)
		return state{s.turn + 1, digest}, s.turn+1 >= w.p.turns, err
	}
	if !w.plain {
		s, err := foresay.Loop(ctx, state{digest: 1}, step, limits)
		return s.digest, err
	}
	for s := (state{digest: 1}); ; {
		next, done, err := step(ctx, s)
		if done || err != nil {
			return next.digest, err
		}
		s = next
	}
}

// chain runs the program as two tasks, of which the second one is given what the first comes to.
func (w *sessionWorld) chain(ctx context.Context, limits foresay.Option) (int, error) {
	half := len(w.p.moves) / 2
	first := func(ctx context.Context) (int, error) { return w.body(ctx, "first", w.p.moves[:half], 1) }
	second := func(ctx context.Context, digest int) (int, error) {
		return w.body(ctx, "second", w.p.moves[half:], digest)
	}
	if !w.plain {
		return foresay.Then(foresay.Go(ctx, first, limits), second, limits).Wait(ctx)
	}
	digest, err := first(ctx)
	if err != nil {
		return 0, err
	}
	return second(ctx, digest)
}

func (w *sessionWorld) body(ctx context.Context, at string, moves []sessionMove, digest int) (int, error) {
	for i, m := range moves {
		v, err := w.move(ctx, fmt.Sprintf("%s.%d", at, i), m, digest)
		if err != nil {
			return digest, err
		}
		digest = (digest*31 + v + 7) % 10_007
	}
	return digest, nil
}

func (w *sessionWorld) move(ctx context.Context, at string, m sessionMove, digest int) (int, error) {
	key, n := m.keys[digest%len(m.keys)], m.n
	if n < 0 {
		n = digest % 4
	}
	switch m.kind {
	case moveAdd:
		identity := at
		if w.p.equal {
			identity = ""
		}
		v, err := w.sessions[m.session].Add(w.offering(ctx, at, m), fmt.Sprint(key, m.session), n, identity)
		return w.told(at, v), err
	case moveLook:
		return w.visit(w.offering(ctx, at, m), at, w.look, digest%50)
	case movePost:
		return w.visit(w.offering(ctx, at, m), at, w.post, digest%50)
	case moveBranch:
		i := digest % 2
		return w.body(ctx, fmt.Sprint(at, "/", i), m.bodies[i], digest)
	case moveGroup:
		return w.group(ctx, at, m, digest)
	case moveFuture, moveThen:
		return w.future(ctx, at, m, digest)
	case moveBarrier:
		if err := foresay.Barrier(ctx); err != nil {
			return 0, err
		}
		w.note(&w.hooks, at, digest)
	case moveAct:
		return foresay.Act(ctx, at, func(context.Context) (int, error) {
			w.note(&w.hooks, at, digest)
			return digest % 10, nil
		})
	case moveSleep:
		if !w.plain {
			time.Sleep(m.pause)
		}
	}
	return 0, nil
}

// future looks in a future, and has a body depend on it, if there is one.
func (w *sessionWorld) future(ctx context.Context, at string, m sessionMove, digest int) (int, error) {
	look := func(ctx context.Context) (int, error) { return w.visit(ctx, at, w.look, digest%50) }
	then := func(ctx context.Context, v int) (int, error) { return v, nil }
	if m.kind == moveThen {
		then = func(ctx context.Context, v int) (int, error) { return w.body(ctx, at+"/0", m.bodies[0], digest+v) }
	}
	if w.plain {
		v, err := look(ctx)
		if err != nil {
			return 0, err
		}
		return then(ctx, v)
	}
	var opts []foresay.CallOption
	if v, ok := w.offer(at, m); ok {
		opts = append(opts, foresay.Guess(v))
	}
	f := foresay.Go(ctx, look, opts...)
	if m.kind == moveFuture {
		return f.Wait(ctx)
	}
	return foresay.Then(f, then).Wait(ctx)
}

func (w *sessionWorld) group(ctx context.Context, at string, m sessionMove, digest int) (int, error) {
	out := make([]int, len(m.bodies))
	g := foresay.NewGroup(ctx)
	for i, b := range m.bodies {
		body := func(ctx context.Context) (err error) {
			out[i], err = w.body(ctx, fmt.Sprint(at, "/", i), b, digest)
			return err
		}
		if w.plain {
			if err := body(ctx); err != nil {
				return 0, err
			}
			continue
		}
		g.Go(body)
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return out[0]*13 + out[1], nil
}

// offering returns the context of a call with what the code guesses about it.
func (w *sessionWorld) offering(ctx context.Context, at string, m sessionMove) context.Context {
	if v, ok := w.offer(at, m); ok {
		return foresay.Predicting(ctx, v)
	}
	return ctx
}

func (w *sessionWorld) offer(at string, m sessionMove) (int, bool) {
	if w.plain || m.guess == noOffer {
		return 0, false
	}
	v, ok := w.answers[at] // which nobody changes any more
	return v + m.guess, ok
}

// told notes what a place was told, if that is the right answer.
func (w *sessionWorld) told(at string, v int) int {
	if w.plain {
		w.answers[at] = v
	}
	return v
}

func (w *sessionWorld) note(list *[]string, at string, v int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, fmt.Sprint(at, " ", v))
}

// visit is a call of another service, which answers what it is asked for.
type visit struct {
	w  *sessionWorld
	at string
	v  int
}

func (w *sessionWorld) visit(ctx context.Context, at string, site *control.CallSite, v int) (int, error) {
	o := &visit{w, at, v}
	if w.plain {
		if site == w.post {
			w.note(&w.posts, at, v)
		}
		return w.told(at, v), nil
	}
	got, err := driver.Perform(ctx, &driver.Operation{CallSite: site, Conn: "shelf", Identity: fmt.Sprint(at, " ", v),
		Request: at, CanSpeculate: site == w.look, Transport: o})
	if err != nil {
		return 0, err
	}
	return got.(int), nil
}

// Start implements driver.Transport.
func (o *visit) Start(_ context.Context, a *driver.Attempt) {
	d := o.w.delays()
	time.AfterFunc(d.arrives, func() {
		if a.Operation().CallSite == o.w.post {
			o.w.note(&o.w.posts, o.at, o.v)
		}
		time.AfterFunc(d.arrives, func() { a.Finish(o.v, nil) })
	})
}

// Equal implements driver.Transport.
func (*visit) Equal(prediction, actual any) bool { return prediction == actual }

// Same implements driver.Transport.
func (*visit) Same(a, b any) bool { return a == b }

// Accept implements driver.Transport.
func (*visit) Accept(prediction any) (any, bool) {
	_, ok := prediction.(int)
	return prediction, ok
}

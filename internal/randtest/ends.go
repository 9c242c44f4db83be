package randtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
)

// This file is about contexts that the code ends itself, by a time limit, by their
// cancel functions, or since something else failed, and goes on to use. What has to
// run out or to be cancelled is a read that never answers, so that it does not depend
// on how fast anything is.

// ending is how a step ends its context.
type ending uint8

const (
	endLimit   ending = iota // a read runs out of time
	endCancel                // the code cancels it after a read
	endTimer                 // a timer cancels it during a read
	endGroup                 // a failure in one lane of a Group cancels the other's
	endFutures               // so does the failure of a future
	endMembers               // members of Any end their own contexts
	endings
	endTask  ending = iota - 1 // the program's own context ends
	endHedge ending = iota - 1 // a read that answers ends the context of one that does not
)

func (e ending) String() string {
	return [...]string{"limit", "cancel", "timer", "group", "futures", "members", "the program's", "hedge"}[e]
}

// step returns a step that ends its context so.
func (e ending) step() *step {
	return &step{kind: kindEnd, ends: e, pause: 20 * time.Millisecond}
}

// classNever is that of keys whose reads never answer.
const classNever = 'n'

// addEndings adds such steps to a program. It is not for worlds in which gRPC retries:
// a call that ends between two attempts keeps a lock for the pause between them, which
// in a bubble never passes then. They are drawn apart from the others, so
// that what a seed means otherwise stays as it is.
func (sc *Scenario) addEndings() {
	r := rand.New(rand.NewPCG(sc.Seed, 0xe4d5))
	g := &generator{Rand: r, servers: sc.knobs.Servers, id: 5000}
	hedges := rand.New(rand.NewPCG(sc.Seed, 0x4ed6e)) // apart from these, for the same reason
	h := &generator{Rand: hedges, servers: sc.knobs.Servers, id: 6000, hedges: true}
	for _, t := range sc.tasks {
		for i := range t.links {
			if r.IntN(2) == 0 {
				t.links[i] = g.addEnding(t.links[i], false)
			}
			if hedges.IntN(4) == 0 {
				t.links[i] = h.addEnding(t.links[i], false)
			}
		}
	}
}

// addEnding puts a step in some place of a body, or of one within. What is repeated has no
// futures that are cancelled: those of two turns would write at once.
func (g *generator) addEnding(steps []*step, repeated bool) []*step {
	at := g.IntN(len(steps) + 1)
	if at < len(steps) {
		switch s := steps[at]; s.kind {
		case kindBranch, kindRepeat, kindDo, kindGroup, kindFutures, kindQuorum, kindAny:
			if i := g.IntN(len(s.bodies)); g.IntN(2) == 0 {
				s.bodies[i] = g.addEnding(s.bodies[i], repeated || s.kind == kindRepeat)
				return steps
			}
		}
	}
	g.id++
	s := &step{id: g.id, kind: kindEnd, ends: ending(g.IntN(int(endings))), tenant: g.IntN(4) == 0}
	if s.pause = time.Duration(1+g.IntN(25)) * 997 * time.Microsecond; g.IntN(3) == 0 {
		s.pause, s.count = time.Second, 1+g.IntN(2) // there is time for other reads before
	}
	if g.hedges {
		s.ends, s.count = endHedge, g.IntN(3)
	} else if g.IntN(8) == 0 && !repeated {
		s = &step{id: g.id, kind: kindLoose, how: cancelled}
		g.looseBodies(s, 3)
	}
	return append(steps[:at:at], append([]*step{s}, steps[at:]...)...)
}

// end carries out such a step.
func (x *execution) end(ctx context.Context, at string, s *step, digest string) (string, error) {
	x.w.oracle.computes(x.w.plain, s.pause)
	e := &ender{x: x, at: at, s: s}
	switch s.ends {
	case endLimit:
		d, cancel := context.WithTimeout(ctx, s.pause)
		defer cancel()
		err := e.reads(d)
		if err == nil {
			err = e.never(d, "/never")
		}
		e.ended(d)
		return e.after(d, digest, err)
	case endCancel:
		d, cancel := context.WithCancel(ctx)
		defer cancel()
		err := e.reads(d)
		cancel()
		return e.after(d, digest, err)
	case endTimer:
		d, cancel := context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(s.pause, cancel).Stop()
		err := e.never(d, "/never")
		e.ended(d)
		return e.after(d, digest, err)
	case endMembers:
		return e.members(ctx, digest)
	case endHedge:
		return e.hedge(ctx, digest)
	case endTask:
		return x.contextEnds(ctx, e, digest)
	default:
		return e.siblings(ctx, digest)
	}
}

// ender carries out one step, and collects what its code sees.
type ender struct {
	x    *execution
	at   string
	s    *step
	seen []string
}

func (e *ender) see(err error) error {
	if err != nil && e.x.w.sc.fatal(err) {
		return err
	}
	e.seen = append(e.seen, status.Code(err).String())
	return nil
}

func (e *ender) key(class byte, n int) string {
	return keyOf((e.s.id+n)%e.x.w.sc.knobs.Servers, class, n)
}

func (e *ender) call(ctx context.Context, place string, k kind, key string) error {
	c := &invoker{w: e.x.w, clients: e.x.w.clients}
	o := operation(k, key, "late")
	m, err := c.call(ctx, e.at+place, serverOf(key), o)
	if err == nil {
		e.x.acknowledge(o, m, "")
	}
	return e.see(err)
}

// never makes a read that does not answer.
func (e *ender) never(ctx context.Context, place string) error {
	return e.call(ctx, place, kindGet, e.key(classNever, 0))
}

// reads makes reads that do.
func (e *ender) reads(ctx context.Context) error {
	for i := range e.s.count {
		if err := e.call(ctx, fmt.Sprint("/read", i), kindGet, e.key(classConstant, i)); err != nil {
			return err
		}
	}
	return nil
}

// ended notes with what a context has ended by now.
func (e *ender) ended(ctx context.Context) {
	time.Sleep(time.Millisecond)
	e.seen = append(e.seen, fmt.Sprint(ctx.Err()))
}

// after uses a context that has ended, in several ways, and then one that has not.
func (e *ender) after(ctx context.Context, digest string, err error) (string, error) {
	if err != nil {
		return digest, err
	}
	for i, k := range []kind{kindPut, kindGet, kindAppend} {
		if i == 1 {
			c, cancel := context.WithTimeout(ctx, e.s.pause/2)
			defer cancel()
			ctx = c
		}
		if err := e.call(ctx, fmt.Sprint("/after", i), k, e.key(classOwn, 20*e.s.id+i)); err != nil {
			return digest, err
		}
	}
	return e.x.note(e.at, digest, strings.Join(e.seen, " ")), nil
}

// siblings runs two goroutines, the failure of one of which cancels the other's context.
func (e *ender) siblings(ctx context.Context, digest string) (string, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	one, other := &ender{x: e.x, at: e.at + "/0", s: e.s}, &ender{x: e.x, at: e.at + "/1", s: e.s}
	fail := func(ctx context.Context) error {
		d, end := context.WithTimeout(ctx, e.s.pause)
		defer end()
		return one.never(d, "/never")
	}
	follow := func(ctx context.Context) error {
		if err := other.reads(ctx); err != nil {
			return err
		}
		if err := other.never(ctx, "/never"); err != nil {
			return err
		}
		return other.call(ctx, "/after", kindPut, e.key(classOwn, 20*e.s.id))
	}
	var errs [2]error
	if e.s.ends == endGroup || e.x.w.plain {
		g := foresay.NewGroup(inner)
		g.Go(func(context.Context) error {
			errs[0] = fail(ctx)
			cancel()
			return errs[0]
		})
		g.Go(func(ctx context.Context) error {
			errs[1] = follow(ctx)
			return errs[1]
		})
		_ = g.Wait()
	} else {
		a := foresay.Go(ctx, func(ctx context.Context) (int, error) { return 0, fail(ctx) })
		b := foresay.Go(inner, func(ctx context.Context) (int, error) { return 0, follow(ctx) })
		_, errs[0] = a.Wait(ctx)
		cancel()
		_, errs[1] = b.Wait(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return digest, err
		}
	}
	return e.x.note(e.at, digest, strings.Join(append(one.seen, other.seen...), " ")), nil
}

// hedge waits for two reads side by side, of which one does not answer and ends with the other.
func (e *ender) hedge(ctx context.Context, digest string) (string, error) {
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	one, other := &ender{x: e.x, at: e.at + "/0", s: e.s}, &ender{x: e.x, at: e.at + "/1", s: e.s}
	g := foresay.NewGroup(ctx)
	g.Go(func(ctx context.Context) error {
		d, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(over, end)()
		return one.never(d, "/never")
	})
	g.Go(func(ctx context.Context) error {
		defer cancel()
		return other.reads(ctx)
	})
	if err := g.Wait(); err != nil {
		return digest, err
	}
	return e.x.note(e.at, digest, strings.Join(append(one.seen, other.seen...), " ")), nil
}

// members has the first of several that each end a context of their own.
func (e *ender) members(ctx context.Context, digest string) (string, error) {
	member := func(i int) func(ctx context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			m := &ender{x: e.x, at: fmt.Sprintf("%s/%d", e.at, i), s: e.s}
			d, cancel := context.WithCancel(ctx)
			defer cancel()
			err := m.call(d, "/read", kindGet, keyOf(i, classConstant, 0))
			cancel()
			if err == nil {
				err = m.call(d, "/after", kindPut, e.key(classOwn, 20*e.s.id+i))
			}
			return "any", err
		}
	}
	var fs []*foresay.Future[string]
	for i := range e.x.w.sc.knobs.Servers {
		f := member(i)
		if !e.x.w.plain {
			fs = append(fs, foresay.Go(ctx, f))
		} else if _, err := f(ctx); err != nil {
			return digest, err
		}
	}
	got := "any"
	if !e.x.w.plain {
		var err error
		if got, err = foresay.Any(fs...).Wait(ctx); err != nil {
			return digest, err
		}
	}
	return e.x.note(e.at, digest, got), nil
}

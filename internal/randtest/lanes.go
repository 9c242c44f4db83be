package randtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// This file is about code that runs concurrently within a task.

func (x *execution) nested(ctx context.Context, at string, s *step, digest string) (string, error) {
	f := func(ctx context.Context) (string, error) { return x.body(ctx, at, s.bodies[0], digest) }
	if x.w.plain {
		return f(ctx)
	}
	return foresay.Do(ctx, f)
}

// join adds the lanes' digests to the digest, in the lanes' order.
func (x *execution) join(at, digest string, lanes []string) string {
	for i, l := range lanes {
		digest = x.note(fmt.Sprintf("%s/%d", at, i), digest, l)
	}
	return digest
}

func (x *execution) group(ctx context.Context, at string, s *step, digest string) (string, error) {
	out := make([]string, len(s.bodies))
	g := foresay.NewGroup(ctx)
	for i, b := range s.bodies {
		g.Go(func(own context.Context) error {
			var err error
			out[i], err = x.body(inside(own, ctx), fmt.Sprintf("%s/%d", at, i), b, digest)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return digest, err
	}
	return x.join(at, digest, out), nil
}

func (x *execution) shared(ctx context.Context, at string, s *step, digest string) (string, error) {
	out := make([]string, len(s.bodies))
	errs := make([]error, len(s.bodies))
	var wg sync.WaitGroup
	for i, b := range s.bodies {
		wg.Go(func() {
			defer x.unharmed(at)
			errs[i] = foresay.ErrMisspeculated // if the goroutine is ended
			out[i], errs[i] = x.body(sharedStrand(ctx), fmt.Sprintf("%s/%d", at, i), b, digest)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return digest, err
		}
	}
	return x.join(at, digest, out), nil
}

// unharmed is deferred in goroutines of the code's own. A panic there would end the process. It
// gets there only if a wrong guess shows, as it does when a rule is removed.
func (x *execution) unharmed(at string) {
	if p := recover(); p != nil {
		x.w.journal.brokenRule("a panic in a goroutine of the code's own at %s: %v", at, p)
	}
}

// contend appends the same to one key from several lanes, or goroutines on one
// context, each of which then writes what it got to a key of its own. Who got
// what is open; that each wrote what it got is not.
func (x *execution) contend(ctx context.Context, at string, s *step, digest string) (string, error) {
	got := make([]string, s.count)
	errs := make([]error, s.count)
	one := func(ctx context.Context, i int) {
		errs[i] = foresay.ErrMisspeculated // if the goroutine is ended
		got[i], errs[i] = x.contender(ctx, fmt.Sprintf("%s/%d", at, i), s, i)
	}
	if s.lanes {
		g := foresay.NewGroup(ctx)
		for i := range s.count {
			g.Go(func(ctx context.Context) error { one(ctx, i); return nil })
		}
		if err := g.Wait(); err != nil {
			return digest, err
		}
	} else {
		var wg sync.WaitGroup
		for i := range s.count {
			wg.Go(func() {
				defer x.unharmed(at)
				one(ctx, i)
			})
		}
		wg.Wait()
	}
	for _, err := range errs {
		if err != nil {
			return x.noted(at, digest, "", err)
		}
	}
	c := &invoker{w: x.w, clients: x.w.clients}
	for i := range got {
		key := s.privateKey(i)
		m, err := c.call(ctx, "", serverOf(key), operation(kindGet, key, ""))
		if err != nil {
			return x.noted(at, digest, "", err)
		}
		if v := m.(*kvpb.GetResponse).GetValue(); v != got[i] {
			return x.note(at, digest, fmt.Sprintf("%s holds %s, not %s", key, v, got[i])), nil
		}
	}
	slices.Sort(got)
	return x.note(at, digest, fmt.Sprint(got)), nil
}

func (s *step) privateKey(i int) string {
	return keyOf(serverOf(s.keys[0]), classPrivate, 10*s.id+i)
}

func (x *execution) contender(ctx context.Context, at string, s *step, i int) (string, error) {
	c := &invoker{w: x.w, clients: x.w.clients}
	if s.lanes {
		time.Sleep(time.Duration(x.w.sc.chance.below(3_000_000, "contender", at)))
	}
	m, err := c.call(ctx, at+".0", serverOf(s.keys[0]), operation(kindAppend, s.keys[0], "x"))
	if err != nil {
		return "", err
	}
	got := m.(*kvpb.AppendResponse).GetValue()
	for n := range 2 {
		constant := keyOf(serverOf(s.keys[0]), classConstant, n)
		if _, err := c.call(ctx, fmt.Sprintf("%s.%d", at, 1+n), serverOf(constant),
			operation(kindGet, constant, "")); err != nil {
			return "", err
		}
		if n == 0 {
			if _, err := c.call(ctx, at+".3", serverOf(s.keys[0]), operation(kindPut, s.privateKey(i), got)); err != nil {
				return "", err
			}
		}
	}
	return got, nil
}

// futures runs bodies in futures, with their continuations, and waits for all.
func (x *execution) futures(ctx context.Context, at string, s *step, digest string) (string, error) {
	ctx, cancel := s.own(ctx)
	defer cancel()
	out := make([]string, len(s.bodies))
	var fs []*foresay.Future[string]
	for i, b := range s.bodies {
		lane := fmt.Sprintf("%s/%d", at, i)
		first := func(ctx context.Context) (string, error) { return x.body(newStrand(ctx), lane, b, digest) }
		then := func(ctx context.Context, v string) (string, error) {
			return x.body(newStrand(ctx), lane+">", s.then[i], v)
		}
		if x.w.plain {
			var err error
			if out[i], err = first(ctx); err != nil {
				return digest, err
			}
			x.w.oracle.mark(lane, out[i])
			if out[i], err = then(ctx, out[i]); err != nil {
				return digest, err
			}
			continue
		}
		f := foresay.Go(ctx, first, x.w.guessDigest(lane)...)
		if s.then[i] != nil {
			f = foresay.Then(f, then)
		}
		fs = append(fs, f)
	}
	if x.w.plain {
		return x.join(at, digest, out), nil
	}
	return x.await(ctx, at, digest, fs)
}

// own returns the context for the step's futures, which is the code's to cancel if it is to end
// before what follows.
func (s *step) own(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.cancels || outlast(slices.Concat(s.bodies, s.then)) {
		return ctx, func() {}
	}
	return context.WithCancel(ctx)
}

// outlast reports whether futures of the bodies, or those of contexts that these end, may go on
// after them.
func outlast(bodies [][]*step) bool {
	return slices.ContainsFunc(bodies, func(b []*step) bool {
		return slices.ContainsFunc(b, func(s *step) bool {
			return s.kind == kindLoose || s.kind == kindEnd || outlast(slices.Concat(s.bodies, s.then))
		})
	})
}

// await waits for futures, all at once or one after the other.
func (x *execution) await(ctx context.Context, at, digest string, fs []*foresay.Future[string]) (string, error) {
	if x.w.sc.chance.percent(50, "all", at) {
		out, err := foresay.All(fs...).Wait(ctx)
		if err != nil {
			return digest, err
		}
		return x.join(at, digest, out), nil
	}
	var out []string
	for _, f := range fs {
		v, err := f.Wait(ctx)
		if err != nil {
			return digest, err
		}
		out = append(out, v)
	}
	return x.join(at, digest, out), nil
}

// guessDigest guesses the result of a future, rightly or wrongly.
func (w *world) guessDigest(lane string) []foresay.CallOption {
	c := w.sc.chance
	right, ok := w.oracle.digest(lane)
	if !c.percent(w.sc.knobs.Guessed/2, "future", lane) {
		return nil
	}
	if ok && c.percent(w.sc.knobs.Right, "right future", lane) {
		return []foresay.CallOption{foresay.Guess(right)}
	}
	return []foresay.CallOption{foresay.Guess("wrong")}
}

// replicas reads a key at all servers. Two of three servers agree on it.
func (x *execution) replicas(ctx context.Context, at string, s *step, digest string) (string, error) {
	key := s.keys[0]
	if s.kind == kindAny {
		key = keyOf(0, classReplica, 0) // the one that no server has stale
	}
	read := func(ctx context.Context, i int) (string, error) {
		c := &invoker{w: x.w, clients: x.w.clients}
		m, err := c.call(ctx, fmt.Sprintf("%s/%d", at, i), i, operation(kindGet, key, ""))
		if err != nil {
			return "", err
		}
		return m.(*kvpb.GetResponse).GetValue(), nil
	}
	then := func(ctx context.Context, v string) (string, error) {
		return x.body(newStrand(ctx), at+">", s.bodies[0], x.note(at, digest, v))
	}
	n := x.w.sc.knobs.Servers
	if x.w.plain {
		votes := make(map[string]int)
		var won string
		for i := range n {
			v, err := read(ctx, i)
			if err != nil {
				return digest, err
			}
			if votes[v]++; votes[v] == 2 {
				won = v
			}
		}
		return then(ctx, won)
	}
	inner, cancel := s.own(ctx)
	defer cancel()
	var fs []*foresay.Future[string]
	for i := range n {
		fs = append(fs, foresay.Go(inner, func(ctx context.Context) (string, error) { return read(ctx, i) }))
	}
	f := foresay.Any(fs...)
	if s.kind == kindQuorum {
		f = foresay.Quorum(2, nil, fs...)
	}
	if !s.cancels {
		return foresay.Then(f, then).Wait(ctx)
	}
	v, err := f.Wait(inner)
	cancel()
	if err != nil {
		return digest, err
	}
	return then(ctx, v)
}

// strand is one goroutine that executes a part of the program, in one run. Only
// within it there is one order in which rollback hooks are registered.
type strand struct {
	hooks int // registered so far
	// shared: others make calls on its context, so that the order of calls tells nothing.
	shared bool

	mu     sync.Mutex
	rolled int // the hook that was rolled back last, 0 for none
}

type strandKey struct{}

// newStrand returns the context of a goroutine that has just begun.
func newStrand(ctx context.Context) context.Context {
	s := new(strand)
	if from, ok := ctx.Value(strandKey{}).(*strand); ok {
		s.shared = from.shared
	}
	return context.WithValue(ctx, strandKey{}, s)
}

// sharedStrand is newStrand for one of several goroutines on one context.
func sharedStrand(ctx context.Context) context.Context {
	return context.WithValue(ctx, strandKey{}, &strand{shared: true})
}

// onRollback registers a rollback hook, and checks that those of a strand run
// last first. One that is registered when all is undone already runs at once.
func (j *journal) onRollback(ctx context.Context, at string, f func()) {
	s := ctx.Value(strandKey{}).(*strand)
	s.hooks++
	n, registered := s.hooks, false
	foresay.OnRollback(ctx, func() {
		s.mu.Lock()
		if registered {
			if s.rolled > 0 && n > s.rolled {
				j.brokenRule("the rollback hook of %s ran after one that was registered before it", at)
			}
			s.rolled = n
		}
		s.mu.Unlock()
		f()
	})
	s.mu.Lock()
	registered = true
	s.mu.Unlock()
}

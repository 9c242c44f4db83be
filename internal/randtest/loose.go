package randtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/foresay/foresay"
)

// This file is about futures that fail, and futures that nobody waits for. What
// they write, they write to keys of their own: nothing waits for it to be there.

// loosely is what becomes of a step's futures.
type loosely uint8

const (
	unwaited    loosely = iota // nobody waits for them
	allFails                   // All fails: the first of them does
	anyHasOne                  // Any has the result of the last, the others fail
	anyHasFirst                // Any has what each returns
	quorumFails                // Quorum(2) fails: all but one do
	cancelled                  // the first fails, which has the code cancel the others
	ways
)

func (l loosely) String() string {
	return [...]string{"nobody waits", "all fails", "any has the last", "any has the first", "quorum fails",
		"a failure cancels"}[l]
}

// classOptional is that of keys whose writes may come too late: they are what
// they are in the sequential execution, or left out from some write on.
const classOptional = 'x'

var errLoose = errors.New("a future that fails")

// loose makes a step of such futures. Futures that Any or Quorum may do without
// write and do nothing else: what they wrote after a read would be lost or not.
func (g *generator) loose(s *step, depth int) {
	s.how = loosely(g.IntN(int(cancelled))) // see addEnding for that
	g.looseBodies(s, depth)
}

func (g *generator) looseBodies(s *step, depth int) {
	n := 2 + g.IntN(2)
	if s.how == quorumFails {
		n = 3
	}
	for i := range n {
		class := byte(classOwn)
		if s.how == cancelled && i > 0 {
			class = classOptional
		}
		var keys []string
		for j := range 2 {
			keys = append(keys, keyOf(g.IntN(g.servers), class, 1000+20*s.id+2*i+j))
		}
		spare := s.how == anyHasFirst || s.how == quorumFails || s.how == anyHasOne && i < n-1
		s.bodies = append(s.bodies, g.looseBody(keys, depth, spare || s.how == cancelled))
	}
}

// looseBody makes a future's steps. Simple ones have no lanes of their own.
func (g *generator) looseBody(keys []string, depth int, simple bool) []*step {
	if !simple {
		return g.body(keys, depth+1, 1+g.IntN(3))
	}
	var steps []*step
	for range 1 + g.IntN(2) {
		g.id++
		s := &step{id: g.id, kind: kindPut + kind(g.IntN(2)), keys: g.pick(keys), value: g.value()}
		switch g.IntN(5) {
		case 0:
			s.kind, s.keys = kindAct, nil
		case 1:
			s.limit = true
		}
		if keys[0][1] == classOptional {
			s.kind, s.keys = kindPut, keys[:1] // an act or another key's write tells which one was too late
			if g.IntN(2) == 0 {
				g.id++
				steps = append(steps, &step{id: g.id, kind: kindGet, keys: []string{keyOf(g.IntN(g.servers), classConstant, 0)}})
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// looseFuture reports what the step's i-th future returns once its body is done.
func (s *step) looseFuture(i int, digest string) (string, error) {
	last := i == len(s.bodies)-1
	switch s.how {
	case allFails, cancelled:
		if i == 0 {
			return "", errLoose
		}
	case anyHasOne, quorumFails:
		if !last {
			return "", errLoose
		}
	case anyHasFirst:
		return "any", nil
	}
	return digest, nil
}

// loose starts the futures, and goes on with what it can know of them.
func (x *execution) loose(ctx context.Context, at string, s *step, digest string) (string, error) {
	results := make([]string, len(s.bodies))
	run := func(ctx context.Context, i int) (string, error) {
		out, err := x.body(newStrand(ctx), fmt.Sprintf("%s/%d", at, i), s.bodies[i], digest)
		if err != nil {
			return "", err
		}
		return s.looseFuture(i, out)
	}
	if x.w.plain {
		for i := range s.bodies {
			if results[i], _ = run(ctx, i); results[i] != "" {
				x.w.oracle.mark(fmt.Sprintf("%s/%d", at, i), results[i])
			}
		}
		return x.note(at, digest, s.looseResult(results)), nil
	}
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		if s.how == cancelled {
			cancel()
		}
	}()
	var fs []*foresay.Future[string]
	for i := range s.bodies {
		c := ctx
		if s.how == cancelled && i > 0 {
			c = inner
		}
		fs = append(fs, foresay.Go(c, func(ctx context.Context) (string, error) {
			return run(ctx, i)
		}, x.w.guessDigest(fmt.Sprintf("%s/%d", at, i))...))
	}
	return x.looseEnd(ctx, at, s, digest, fs)
}

// looseEnd waits for the futures as far as anybody does.
func (x *execution) looseEnd(
	ctx context.Context, at string, s *step, digest string, fs []*foresay.Future[string],
) (string, error) {
	results := make([]string, len(fs))
	var err, want error
	switch s.how {
	case unwaited:
	case allFails:
		_, err = foresay.All(fs...).Wait(ctx)
		want = errLoose
	case anyHasOne, anyHasFirst:
		results[len(fs)-1], err = foresay.Any(fs...).Wait(ctx)
	case quorumFails:
		_, err = foresay.Quorum(2, nil, fs...).Wait(ctx)
		want = foresay.ErrNoQuorum
	case cancelled:
		_, err = fs[0].Wait(ctx)
		want = errLoose
	}
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		if err == nil || x.w.sc.fatal(err) {
			return digest, fmt.Errorf("%s: got %w, want %v", at, err, want)
		}
		return x.note(at, digest, "error "+err.Error()), nil
	}
	return x.note(at, digest, s.looseResult(results)), nil
}

// looseResult is what the code goes on with, of what the futures returned.
func (s *step) looseResult(results []string) string {
	if s.how == anyHasOne || s.how == anyHasFirst {
		return results[len(results)-1]
	}
	return s.how.String()
}

// This file is about goroutines of a Group that make a call with the context of the code
// around it. Such a call counts as the surrounding code's, which does not stand on what the
// goroutine guesses.

type outerKey struct{}

// inside returns the context of a goroutine of a Group, which was given own, in code
// whose context is outer.
func inside(own, outer context.Context) context.Context {
	return context.WithValue(newStrand(own), outerKey{}, outer)
}

// outside returns the context of the code around the goroutine that holds ctx.
func outside(ctx context.Context) context.Context {
	outer, ok := ctx.Value(outerKey{}).(context.Context)
	if !ok {
		return ctx
	}
	return sharedStrand(outer)
}

// astray has one of the bodies of a Group end in a write with the outer context, of
// what was computed so far, to a key that nothing else touches.
func (g *generator) astray(s *step) {
	if g.timed || g.IntN(4) != 0 {
		return
	}
	g.id++
	i := g.IntN(len(s.bodies))
	s.bodies[i] = append(s.bodies[i], written(g.id, keyOf(g.IntN(g.servers), classOwn, 1000+20*g.id)))
}

// written is a write of what was computed so far, with the outer context.
func written(id int, key string) *step {
	return &step{id: id, kind: kindPut, keys: []string{key}, outer: true}
}

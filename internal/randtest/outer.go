package randtest

import "context"

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

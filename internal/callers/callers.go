// Package callers matches numbered answers to those who wait for them: it stands between a caller
// that blocks or gave a function, and a node that answers by number.
package callers

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// ErrTooMany says that as many wait as may.
var ErrTooMany = errors.New("too many callers wait for an answer")

// A Table holds who waits for which answer, each of type A. The zero Table is empty and admits any
// number. Its methods may be called concurrently.
type Table[A any] struct {
	// Most bounds how many wait at once, 0 for no bound. It is set before the table is used.
	Most int

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]func(A)
	closed  error
}

// Add has then wait for an answer, whose number it returns; numbers begin with 1. The error is
// ErrTooMany, or why the table was closed.
func (t *Table[A]) Add(then func(A)) (ref uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed != nil:
		return 0, t.closed
	case t.Most > 0 && len(t.waiting) >= t.Most:
		return 0, ErrTooMany
	}
	if t.waiting == nil {
		t.waiting = make(map[uint64]func(A))
	}
	t.last++
	t.waiting[t.last] = then
	return t.last, nil
}

// Forget removes who waits for an answer, and reports whether somebody did: if not, the answer has
// come, or is being given.
func (t *Table[A]) Forget(ref uint64) bool { return t.take(ref) != nil }

// Answer gives an answer to who waits for it, and reports whether anybody still did.
func (t *Table[A]) Answer(ref uint64, a A) bool {
	then := t.take(ref)
	if then != nil {
		then(a)
	}
	return then != nil
}

// Tell is Answer to who waits for more.
func (t *Table[A]) Tell(ref uint64, a A) {
	t.mu.Lock()
	then := t.waiting[ref]
	t.mu.Unlock()
	if then != nil {
		then(a)
	}
}

func (t *Table[A]) take(ref uint64) func(A) {
	t.mu.Lock()
	defer t.mu.Unlock()
	then := t.waiting[ref]
	delete(t.waiting, ref)
	return then
}

// Refs returns the numbers that somebody waits for, in order.
func (t *Table[A]) Refs() []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.waiting))
}

// Close answers all who wait, in order of their numbers. From then on Add fails: because of why,
// the first time that it is closed.
func (t *Table[A]) Close(why error, answer func(ref uint64) A) {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting = nil
	if t.closed == nil {
		t.closed = why
	}
	t.mu.Unlock()
	for _, ref := range slices.Sorted(maps.Keys(waiting)) {
		waiting[ref](answer(ref))
	}
}

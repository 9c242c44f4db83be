// Package agenda keeps coming events in order of time. It has no clock of its own.
package agenda

import (
	"container/heap"
	"time"
)

// An Entry is something that happens at a time. It is on one Agenda, and there at most once.
type Entry[T any] struct {
	Value T

	due   time.Duration
	order uint64 // among entries of one time: the order in which they were set
	place int    // in the heap, from 1; 0: it is on no agenda
}

// An Agenda has entries in the order of their times, and those of one time in the order in which
// they were set. Its zero value has none.
type Agenda[T any] struct {
	entries entries[T]
	set     uint64
}

// Set has an entry happen at a time, whatever was set for it before.
func (a *Agenda[T]) Set(e *Entry[T], due time.Duration) {
	a.set++
	e.due, e.order = due, a.set
	if e.place > 0 {
		heap.Fix(&a.entries, e.place-1)
	} else {
		heap.Push(&a.entries, e)
	}
}

// Remove takes an entry off, if it is on the agenda.
func (a *Agenda[T]) Remove(e *Entry[T]) {
	if e.place > 0 {
		heap.Remove(&a.entries, e.place-1)
	}
}

// Next returns the time of the first entry; ok is false if there is none.
func (a *Agenda[T]) Next() (due time.Duration, ok bool) {
	if len(a.entries) == 0 {
		return 0, false
	}
	return a.entries[0].due, true
}

// Pop takes the first entry off if its time has come, and returns nil otherwise.
func (a *Agenda[T]) Pop(now time.Duration) *Entry[T] {
	if due, ok := a.Next(); !ok || due > now {
		return nil
	}
	return heap.Pop(&a.entries).(*Entry[T])
}

// Clear takes all entries off.
func (a *Agenda[T]) Clear() {
	for _, e := range a.entries {
		e.place = 0
	}
	a.entries = nil
}

// entries is a container/heap.
type entries[T any] []*Entry[T]

func (h entries[T]) Len() int { return len(h) }

func (h entries[T]) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}

func (h entries[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push adds an *Entry.
func (h *entries[T]) Push(x any) {
	*h = append(*h, x.(*Entry[T]))
	(*h)[len(*h)-1].place = len(*h)
}

// Pop removes the last one.
func (h *entries[T]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = 0
	return e
}

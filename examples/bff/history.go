package main

import (
	"slices"
	"time"
)

// history is a value and all that it was before.
type history[T any] struct {
	versions []version[T] // the oldest first; the last one holds
}

type version[T any] struct {
	value T
	since time.Time
}

// set changes the value.
func (h *history[T]) set(v T, at time.Time) { h.versions = append(h.versions, version[T]{v, at}) }

// now returns the value.
func (h *history[T]) now() T { return h.versions[len(h.versions)-1].value }

// during returns what the value was at the one time, and then all that it was
// until the other. It was something at the first.
func (h *history[T]) during(from, to time.Time) []T {
	var all []T
	for _, v := range slices.Backward(h.versions) {
		if v.since.After(to) {
			continue
		}
		all = append(all, v.value)
		if !v.since.After(from) {
			break
		}
	}
	slices.Reverse(all)
	return all
}

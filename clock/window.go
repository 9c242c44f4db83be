package clock

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Window holds the durations that were measured within the last while, and tells their
// percentiles.
type Window struct {
	span    time.Duration
	limit   int
	samples []sample        // in the order of their times; the first gone are cut off now and then
	gone    int             // of samples
	sorted  []time.Duration // Invariant: the values of samples[gone:].
}

type sample struct {
	at    time.Duration
	value time.Duration
}

// NewWindow returns an empty window over the given span, which holds at most limit measurements: of
// more, the newest. Both must be positive.
func NewWindow(span time.Duration, limit int) (*Window, error) {
	if span <= 0 || limit <= 0 {
		return nil, fmt.Errorf("clock: a window of %v and %d measurements has a limit that is not positive", span, limit)
	}
	return &Window{span: span, limit: limit}, nil
}

// Add puts a measurement in. If the clock was set back since the last one, those before it are
// dropped: nobody knows how old they are.
func (w *Window) Add(now, value time.Duration) {
	w.expire(now)
	if len(w.sorted) == w.limit {
		w.dropFirst()
	}
	w.samples = append(w.samples, sample{now, value})
	i, _ := slices.BinarySearch(w.sorted, value)
	w.sorted = slices.Insert(w.sorted, i, value)
}

// Percentile returns the smallest measurement that a part p of those in the window do not exceed:
// 0.95 for the 95th percentile, 0 for the least. ok is false if the window is empty.
func (w *Window) Percentile(now time.Duration, p float64) (value time.Duration, ok bool) {
	w.expire(now)
	n := len(w.sorted)
	if n == 0 {
		return 0, false
	}
	const tiny = 1e-9 // 0.95 of 20 is 19, though not in binary
	rank := int(math.Ceil(p*float64(n) - tiny))
	return w.sorted[min(max(rank, 1), n)-1], true
}

// Len returns how many measurements are in the window.
func (w *Window) Len(now time.Duration) int {
	w.expire(now)
	return len(w.sorted)
}

// Drop empties the window.
func (w *Window) Drop() {
	w.samples, w.sorted, w.gone = w.samples[:0], w.sorted[:0], 0
}

// expire drops what is older than the span, or, if the clock was set back, all.
func (w *Window) expire(now time.Duration) {
	if n := len(w.samples); n > 0 && w.samples[n-1].at > now {
		w.Drop()
	}
	for w.gone < len(w.samples) && now-w.samples[w.gone].at >= w.span {
		w.dropFirst()
	}
	if w.gone > len(w.samples)/2 {
		w.samples = slices.Delete(w.samples, 0, w.gone)
		w.gone = 0
	}
}

func (w *Window) dropFirst() {
	i, _ := slices.BinarySearch(w.sorted, w.samples[w.gone].value)
	w.sorted = slices.Delete(w.sorted, i, i+1)
	w.gone++
}

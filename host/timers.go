package host

import (
	"container/heap"
	"time"

	"github.com/foresay/foresay/protocol"
)

// timers are those of one node, by its own clock.
type timers struct {
	queue  timerHeap
	byName map[protocol.Timer]*timer
	last   uint64
}

type timer struct {
	name protocol.Timer
	due  time.Duration
	seq  uint64 // of timers that are due at one moment, the first set is the first to run out
	at   int    // in the heap
}

func newTimers() *timers { return &timers{byName: make(map[protocol.Timer]*timer)} }

func (t *timers) set(name protocol.Timer, due time.Duration) {
	t.last++
	e := t.byName[name]
	if e == nil {
		e = &timer{name: name, due: due, seq: t.last}
		t.byName[name] = e
		heap.Push(&t.queue, e)
		return
	}
	e.due, e.seq = due, t.last
	heap.Fix(&t.queue, e.at)
}

func (t *timers) stop(name protocol.Timer) {
	if e := t.byName[name]; e != nil {
		delete(t.byName, name)
		heap.Remove(&t.queue, e.at)
	}
}

// next returns when the first timer runs out.
func (t *timers) next() (due time.Duration, ok bool) {
	if len(t.queue) == 0 {
		return 0, false
	}
	return t.queue[0].due, true
}

// pop takes the first timer if it has run out.
func (t *timers) pop(now time.Duration) (protocol.Timer, bool) {
	if len(t.queue) == 0 || t.queue[0].due > now {
		return nil, false
	}
	e := heap.Pop(&t.queue).(*timer)
	delete(t.byName, e.name)
	return e.name, true
}

// timerHeap is a container/heap.
type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push adds a *timer.
func (h *timerHeap) Push(x any) {
	e := x.(*timer)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop removes the last one.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

package shape

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// An event is something that happens at a time. It is in its schedule at most once.
type event struct {
	due   time.Duration
	order uint64 // among events of one instant: the order in which they were set
	index int    // in the heap, or -1
	fire  func(now time.Duration)
}

// A schedule fires events in the order of their times, one after the other, on one alarm: whatever
// is due together costs one wake-up.
type schedule struct {
	start time.Time

	mu      sync.Mutex
	events  events
	set     uint64
	alarm   alarm
	armed   time.Duration // what the alarm is set to, or never
	running bool          // events are being fired, and the alarm is set afterwards
	closed  bool
}

// An alarm calls schedule.run after a delay.
type alarm interface {
	// reset replaces the delay; it does not block.
	reset(after time.Duration)
	// close ends the alarm and waits for its goroutine, if it has one.
	close()
}

func newSchedule(newAlarm func(ring func()) alarm) *schedule {
	s := &schedule{start: time.Now(), armed: never}

	s.alarm = newAlarm(s.run)
	return s
}

// now returns the time since the network began.
func (s *schedule) now() time.Duration { return time.Since(s.start) }

func newEvent(fire func(now time.Duration)) *event { return &event{index: -1, fire: fire} }

// at sets when e fires, in place of any earlier setting.
func (s *schedule) at(e *event, due time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	e.due = due
	e.order = s.set
	s.set++
	if e.index >= 0 {
		heap.Fix(&s.events, e.index)
	} else {
		heap.Push(&s.events, e)
	}
	s.arm()
}

// cancel takes e out. Its fire may be running still when cancel returns.
func (s *schedule) cancel(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.index >= 0 {
		heap.Remove(&s.events, e.index)
	}
}

// arm sets the alarm to the first event, if that is earlier than what it is set to. An alarm that
// rings too early finds nothing to do and is set again.
func (s *schedule) arm() {
	if s.running || s.closed || len(s.events) == 0 || s.events[0].due >= s.armed {
		return
	}
	s.armed = s.events[0].due
	s.alarm.reset(max(0, s.armed-s.now()))
}

// run fires what is due.
func (s *schedule) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = never
	if s.running {
		return // the other run looks at the clock once more before it ends
	}
	s.running = true
	for now := s.now(); len(s.events) > 0 && !s.closed; {
		if s.events[0].due > now {
			if now = s.now(); s.events[0].due > now {
				break
			}
		}
		e := heap.Pop(&s.events).(*event)
		s.mu.Unlock()
		e.fire(now)
		s.mu.Lock()
	}
	s.running = false
	s.arm()
}

func (s *schedule) close() {
	s.mu.Lock()
	s.closed = true
	for _, e := range s.events {
		e.index = -1
	}
	s.events = nil
	s.mu.Unlock()
	s.alarm.close()
}

// timerAlarm is a time.Timer: exact in virtual time, and up to a millisecond late on the wall
// clock.
type timerAlarm struct{ timer *time.Timer }

func newTimerAlarm(ring func()) alarm {
	t := time.AfterFunc(time.Hour, ring)
	t.Stop()
	return timerAlarm{timer: t}
}

func (a timerAlarm) reset(after time.Duration) { a.timer.Reset(after) }
func (a timerAlarm) close()                    { a.timer.Stop() }

// events is a heap, by due and then order.
type events []*event

func (h events) Len() int { return len(h) }

func (h events) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}

func (h events) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *events) Push(x any) {
	e := x.(*event)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}

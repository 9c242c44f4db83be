package shape

import (
	"math"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/agenda"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// An event is a function that is called at a time.
type event = agenda.Entry[func(now time.Duration)]

// A schedule fires events in the order of their times, one after the other, on one alarm: whatever
// is due together costs one wake-up.
type schedule struct {
	start time.Time

	mu      sync.Mutex
	agenda  agenda.Agenda[func(now time.Duration)]
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

func newEvent(fire func(now time.Duration)) *event { return &event{Value: fire} }

// at sets when e fires, in place of any earlier setting.
func (s *schedule) at(e *event, due time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.agenda.Set(e, due)
	s.arm()
}

// cancel takes e out. Its fire may be running still when cancel returns.
func (s *schedule) cancel(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agenda.Remove(e)
}

// arm sets the alarm to the first event, if that is earlier than what it is set to. An alarm that
// rings too early finds nothing to do and is set again.
func (s *schedule) arm() {
	due, ok := s.agenda.Next()
	if s.running || s.closed || !ok || due >= s.armed {
		return
	}
	s.armed = due
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
	for now := s.now(); !s.closed; {
		e := s.agenda.Pop(now)
		if e == nil {
			now = s.now() // which may have gone on meanwhile
			if e = s.agenda.Pop(now); e == nil {
				break
			}
		}
		s.mu.Unlock()
		e.Value(now)
		s.mu.Lock()
	}
	s.running = false
	s.arm()
}

func (s *schedule) close() {
	s.mu.Lock()
	s.closed = true
	s.agenda.Clear()
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

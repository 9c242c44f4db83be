package shape

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockAlarm is a timerfd. Unlike a time.Timer, whose resolution is epoll's millisecond, it expires
// on time, and it needs no thread of its own, for the runtime's poller waits on it. What remains,
// some 0.03 to 0.15 ms to wake up an idle machine, it learns and starts so much earlier; the few
// microseconds that it is then too early are spent spinning.
type clockAlarm struct {
	fd   int // of file
	file *os.File
	ring func()
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	due     time.Time     // when to ring
	expires time.Time     // when the timerfd does
	lead    time.Duration // what waking up takes at least; Invariant: 0 <= lead <= maxLead
}

// maxLead bounds lead and so the spinning.
const maxLead = 100 * time.Microsecond

// newClockAlarm returns the most accurate alarm for the wall clock.
func newClockAlarm(ring func()) alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newTimerAlarm(ring) // some sandboxes forbid it
	}
	a := &clockAlarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), ring: ring, done: make(chan struct{})}
	go a.loop()
	return a
}

func (a *clockAlarm) loop() {
	defer close(a.done)
	for expirations := make([]byte, 8); ; {
		if _, err := a.file.Read(expirations); err != nil {
			return // closed
		}
		for due := a.woken(time.Now()); time.Now().Before(due); {
		}
		a.ring()
	}
}

// woken learns from when the alarm woke up, and returns until when to spin.
func (a *clockAlarm) woken(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	late := now.Sub(a.expires)
	if late < 0 || a.due.Sub(now) > maxLead {
		return now // it was set anew after it had expired
	}
	// Down fast and up slowly: lead stays near the least, for being late by the rest costs less
	// than spinning.
	if late < a.lead {
		a.lead -= (a.lead - late) / 2
	} else {
		a.lead = min(maxLead, a.lead+min((late-a.lead)/16, 4*time.Microsecond))
	}
	return a.due
}

func (a *clockAlarm) reset(after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	early := max(1, after-a.lead) // zero would disarm it
	a.due, a.expires = now.Add(after), now.Add(early)
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(early.Nanoseconds())}
	if err := unix.TimerfdSettime(a.fd, 0, &value, nil); err != nil {
		panic("shape: timerfd_settime: " + err.Error()) // the descriptor and the value are valid
	}
}

func (a *clockAlarm) close() {
	a.file.Close() // it was only read
	<-a.done
}

package shape

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clockAlarm is a timerfd: unlike a time.Timer, whose resolution is that of epoll, it rings some 0.03 to 0.15 ms late,
// and it needs no thread of its own, for the runtime's poller waits on it.
type clockAlarm struct {
	fd   int // of file
	file *os.File
	done chan struct{} // closed when the goroutine has ended
}

// newClockAlarm returns the most accurate alarm for the wall clock.
func newClockAlarm(ring func()) alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newTimerAlarm(ring) // some sandboxes forbid it
	}
	a := &clockAlarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for expirations := make([]byte, 8); ; ring() {
			if _, err := a.file.Read(expirations); err != nil {
				return // closed
			}
		}
	}()
	return a
}

func (a *clockAlarm) reset(after time.Duration) {
	// Zero would disarm it.
	value := unix.NsecToTimespec(max(1, after.Nanoseconds()))
	if err := unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: value}, nil); err != nil {
		panic("shape: timerfd_settime: " + err.Error()) // the descriptor and the value are valid
	}
}

func (a *clockAlarm) close() {
	a.file.Close() // it was only read
	<-a.done
}

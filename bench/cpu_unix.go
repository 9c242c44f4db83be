//go:build unix

package bench

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used so far, 0 if the
// system does not tell.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

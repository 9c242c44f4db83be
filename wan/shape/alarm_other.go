//go:build !linux

package shape

// newClockAlarm returns the most accurate alarm for the wall clock.
func newClockAlarm(ring func()) alarm { return newTimerAlarm(ring) }

package specgrpc

import (
	"testing"
	"time"
)

// What was left unread long before a stop is no reason to cut anything: nobody knows that it was
// not read.
func TestStuckByRecentCallsOnly(t *testing.T) {
	since := time.Now()
	for _, tc := range []struct {
		name    string
		unread  time.Time
		running int64
		waiting int64
		want    bool
	}{
		{"nothing was ever left", time.Time{}, 0, 0, false},
		{"long ago", since.Add(-time.Hour), 0, 0, false},
		{"just now", since.Add(time.Millisecond), 0, 0, true},
		{"just now, and a call runs", since.Add(time.Millisecond), 1, 0, false},
		{"a stream without a request", time.Time{}, 1, 1, true},
		{"a stream without a request, and a call runs", time.Time{}, 2, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := new(ServiceRegistrar)
			if !tc.unread.IsZero() {
				r.unread.Store(tc.unread.UnixNano())
			}
			r.running.Store(tc.running)
			r.waiting.Store(tc.waiting)
			if got := stuck([]*ServiceRegistrar{new(ServiceRegistrar), r}, since); got != tc.want {
				t.Errorf("stuck = %v, want %v", got, tc.want)
			}
		})
	}
}

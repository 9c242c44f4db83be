package specgrpc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimerToldBefore: a timer that told of the end of the lease, and was heard
// only after the word was given, ends nothing.
func TestTimerToldBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, given := range map[string]func(s *specStream){
			"no time limit":                  func(s *specStream) { s.timer.Stop(); s.due = time.Time{} },
			"a time limit":                   func(s *specStream) { s.after(time.Second) },
			"a frame that renewed the lease": func(s *specStream) { s.word = noWord; s.beat() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			s := &specStream{stop: cancel, lease: time.Second, reading: true, armed: true, word: confirmed}
			s.after(time.Second)
			s.timer.Stop()
			time.Sleep(time.Second)
			given(s)
			s.tick()
			if ctx.Err() != nil || s.why != "" {
				t.Errorf("%s: the stream was given up: %q", name, s.why)
			}
			s.timer.Stop()
			cancel()
		}
	})
}

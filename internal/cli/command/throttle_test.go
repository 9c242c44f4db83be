package command

import (
	"context"
	"errors"
	"testing"
)

func TestThrottle(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// room counts what may begin now.
	room := func(th *Throttle) (n int) {
		for th.Begin(ended) == nil {
			n++
		}
		for range n {
			th.mu.Lock()
			th.busy--
			th.mu.Unlock()
		}
		return n
	}
	th := NewThrottle(10)
	for i, step := range []struct {
		well bool
		n    int // ends
		want int // that have room then
	}{{true, 0, 1}, {true, 3, 4}, {true, 100, 10}, {false, 1, 5}, {false, 1, 3}, {true, 1, 3}, {true, 2, 4}, {false, 9, 1},
		{true, 1, 2}} {
		for range step.n {
			if err := th.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			th.End(step.well)
		}
		if got := room(th); got != step.want {
			t.Errorf("step %d: there is room for %d, want %d", i, got, step.want)
		}
	}

	// One that waits gets the room that another one leaves, or hears that its context has ended.
	th = NewThrottle(1)
	if err := th.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := th.Begin(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it began with %v, though there was no room", err)
	}
	began := make(chan error)
	go func() { began <- th.Begin(t.Context()) }()
	th.End(true)
	if err := <-began; err != nil {
		t.Error(err)
	}
}

//go:build !race

package specgrpc_test

import (
	"context"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// What speculation adds to an echo's allocations, both ends counted. The race
// detector allocates for itself.
func TestEchoAllocations(t *testing.T) {
	plainly, foretelling := loopback(t, echo{}), loopback(t, foretold{})
	all := always(t)
	asking := specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true})
	off := speculating(t, plainly, specgrpc.WithMode(control.ModeOff))
	bare, cc, asked := grpcAlone(t, plainly), speculating(t, plainly, all), speculating(t, plainly, asking, all)
	streams := speculating(t, foretelling, asking, all)
	allocations := func(call func(context.Context) error) float64 {
		once := func() {
			if err := call(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for range 2500 { // connected, and Do knows the function's habit
			once()
		}
		return testing.AllocsPerRun(2000, once)
	}
	plain := allocations(get(bare))
	for _, tt := range []struct {
		name string
		call func(context.Context) error
		most float64 // more than grpc's own
	}{
		{"outside of tasks", get(cc), 4},
		{"in Do, where nothing is guessed", inTask(off, echoed), 7},
		{"in a task, unpredicted", inTask(cc, ""), 19},
		{"in a task, rightly predicted", inTask(cc, echoed), 17},
		{"in a task, rightly predicted, of a server that is asked in vain", inTask(asked, echoed), 17},
		{"over a speculative stream, predicted by both", inTask(streams, echoed), 76},
	} {
		n := allocations(tt.call)
		for again := 0; again < 2 && n > plain+tt.most; again++ { // a busy machine has calls go other ways
			n = min(n, allocations(tt.call))
		}
		if n > plain+tt.most {
			t.Errorf("%s: %v allocations, grpc alone %v; want at most %v more", tt.name, n, plain, tt.most)
		} else {
			t.Logf("%s: %v allocations, grpc alone %v", tt.name, n, plain)
		}
	}
}

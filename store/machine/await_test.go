package machine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store/gate"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
)

// TestMachineThatWaits: a machine whose nodes may not begin yet says so from the first moment on,
// before whoever has it wait says why. It is asked for nothing, and stops when it is told to.
func TestMachineThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdleWorld(t, wan.Uniform(10*time.Millisecond, "a", "b", "c"))
		defer w.net.Close()
		n, err := Open(Config{
			Protocol: replicatedcommit.Protocol(), Cluster: "test", Topology: w.topology, Machine: "a-1",
			PeerListener: w.peers[0], ClientListener: w.clients[0], PeerDial: w.net.DialContext("a"), Insecure: true, Seed: 1,
			Await: func(ctx context.Context, say func(string)) error {
				time.Sleep(time.Second) // in which it asks others
				say("b is away")
				<-ctx.Done()
				return context.Cause(ctx)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		for _, want := range []string{"it has not begun yet", "b is away"} {
			synctest.Wait()
			s, err := n.Status(t.Context())
			if err != nil || s.GetAwaits() != want || n.obstacles(t.Context()) != want {
				t.Errorf("the status is %v, %v, want that it waits: %s", s, err, want)
			}
			if _, err := n.Retire(t.Context()); err == nil {
				t.Error("it retires before its nodes have begun")
			}
			if err := n.service.Deliver(t.Context(), gate.Read{}); err == nil {
				t.Error("it takes requests before its nodes have begun")
			}
			time.Sleep(2 * time.Second)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for i := range w.sites[1:] {
			w.peers[i+1].Close()
			w.clients[i+1].Close()
		}
	})
}

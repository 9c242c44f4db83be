package front

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/gate"
)

// closing returns a connection to three sites that knows which is near. Its streams are broken, and
// connecting takes a while. abandoned is called in place of a gate when a transaction is given up,
// with what breaks the streams.
func closing(
	t *testing.T, connecting time.Duration, abandoned func(ctx context.Context, breakAll func()),
) (conn *Conn, stop func()) {
	var mu sync.Mutex
	var open []net.Conn
	breakAll := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
		open = nil
	}
	var all []*site
	for range 3 {
		s := newSite(t, agree(nil))
		answer := s.Deliver
		s.Deliver = func(ctx context.Context, msg store.Message) error {
			if _, ok := msg.(gate.Abandon); ok {
				abandoned(ctx, breakAll)
			}
			return answer(ctx, msg)
		}
		all = append(all, s)
	}
	conn = threeSitesOf(t, carousel.Protocol(), func(ctx context.Context, address string) (net.Conn, error) {
		sleep(ctx, connecting)
		c, err := all[address[0]-'a'].dial(ctx)
		if err == nil {
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
		return c, err
	})
	if _, err := begin(conn).ReadNearest(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	synctest.Wait() // all are connected
	breakAll()
	synctest.Wait()
	return conn, func() {
		for _, s := range all {
			s.stop(t)
		}
	}
}

// prepares is how an attempt begins that has a key prepared.
var prepares = client.Beginning{Mode: client.GRPC, Writes: []store.Key{"k"}}

// TestCloseSendsWhatEndedBefore: the function of a transaction fails, and the program closes the
// connection. The store hears that the attempt has ended, though it had when that began. Whoever
// else closes the connection waits for that, too.
func TestCloseSendsWhatEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connecting = partFor / 2
		var abandoned atomic.Int64
		conn, stop := closing(t, connecting, func(context.Context, func()) { abandoned.Add(1) })
		defer stop()
		start := time.Now()
		conn.Begin(prepares).End()
		synctest.Wait() // the node has had it sent
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				conn.Close()
				if n := abandoned.Load(); n != 1 {
					t.Errorf("when the connection is closed, the store has heard of %d ends, want 1", n)
				}
			})
		}
		both.Wait()
		if took := time.Since(start); took != connecting {
			t.Errorf("to close takes %v, want %v", took, connecting)
		}
	})
}

// TestCloseDoesNotWaitForBrokenStreams: when the stream breaks on which an end was sent, nothing
// answers any more, and Close does not wait for that.
func TestCloseDoesNotWaitForBrokenStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silent = partFor / 5
		conn, stop := closing(t, 0, func(ctx context.Context, breakAll func()) {
			time.Sleep(silent)
			breakAll()
			<-ctx.Done()
		})
		defer stop()
		attempt := conn.Begin(prepares)
		synctest.Wait()
		start := time.Now()
		attempt.End()
		conn.Close()
		if took := time.Since(start); took != silent {
			t.Errorf("to close takes %v, want %v", took, silent)
		}
	})
}

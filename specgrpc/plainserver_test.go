package specgrpc_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// A plain server runs nothing on a guess: what it refused is not a call in vain.
func TestRefusedIsNotInVain(t *testing.T) {
	inWorld(t, func(w *world) {
		server := &kvServer{}
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, server) })
		cc := w.dial(addr)
		c := kvpb.NewTestKVClient(cc)
		for range 5 {
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				r, err := guessed(ctx, c, "a", value("wrong"))
				if err != nil {
					return 0, err
				}
				_, err = c.Get(ctx, &kvpb.GetRequest{Key: r.GetValue()})
				return 0, err
			})
			if err != nil {
				w.Fatal(err)
			}
		}
		w.quiet(cc)
		if s := cc.CallSite(getMethod).Stats(); len(server.notes()) != 10 || s.Wasted != 0 || s.Wrong != 5 {
			w.Errorf("%d calls ran: %+v", len(server.notes()), s)
		}
	})
}

// TestPlainServerIsAskedAgain: whether a plain server predicts by now one call asks, which takes a
// round trip more. The others of that moment do not.
func TestPlainServerIsAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, &kvServer{}) })
		c := kvpb.NewTestKVClient(w.dial(addr,
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true})))
		get := func(ctx context.Context) (int, error) {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "a"})
			return 0, err
		}
		if _, err := foresay.Do(w.Context(), get); err != nil { // asks
			w.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Minute)
			var calls sync.WaitGroup
			took := make([]time.Duration, 10)
			for i := range took {
				calls.Go(func() {
					began := time.Now()
					if _, err := foresay.Do(w.Context(), get); err != nil {
						w.Error(err)
					}
					took[i] = time.Since(began)
				})
			}
			calls.Wait()
			late := 0
			for _, d := range took {
				if d > rtt {
					late++
				}
			}
			if late != 1 {
				w.Errorf("%d of 10 calls asked: %v", late, took)
			}
		}
	})
}

package specgrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
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
		if s := cc.Site(getMethod).Stats(); len(server.notes()) != 10 || s.Wasted != 0 || s.Wrong != 5 {
			w.Errorf("%d calls ran: %+v", len(server.notes()), s)
		}
	})
}

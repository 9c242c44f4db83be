package machine

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// orders is a service whose handler commits a transaction.
type orders struct {
	demov1.UnimplementedShopServer
	*aheads
}

func (o *orders) Buy(ctx context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	return &demov1.BuyResponse{Number: 7}, o.add(ctx, o.clients[0], req.GetPurchase().GetItem())
}

// TestAheadHandlers: a handler's response travels as a prediction when its transaction is committed
// locally. A client of Foresay goes on with it, to the next service; a plain client gets the final
// one.
func TestAheadHandlers(t *testing.T) {
	const services = 3
	for _, plain := range []bool{true, false} {
		t.Run(fmt.Sprintf("plain %v", plain), func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				lis := a.world.listen("a")
				s := specgrpc.NewServer(specgrpc.Stages(demov1.Shop_Buy_FullMethodName), specgrpc.AllReplayable())
				demov1.RegisterShopServer(s, &orders{aheads: a})
				go func() { _ = s.Serve(lis) }() // ends with GracefulStop
				defer s.GracefulStop()
				opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
						return a.world.net.DialContext("a")(ctx, to)
					})}
				var conn grpc.ClientConnInterface
				if plain {
					c, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), opts...)
					if err != nil {
						a.Fatal(err)
					}
					defer c.Close()
					conn = c
				} else {
					c, err := specgrpc.NewClient("passthrough:///"+lis.Addr().String(), append(opts,
						specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(control.CallSiteConfig{
							Name: demov1.Shop_Buy_FullMethodName, Effect: control.EffectStaged, ServerPredictions: true,
							ConflictKey: func(req any) string { return req.(*demov1.BuyRequest).GetPurchase().GetItem() },
						}))...)
					if err != nil {
						a.Fatal(err)
					}
					defer c.Close()
					conn = c
				}
				buy := func(ctx context.Context) error {
					for i := range services {
						_, err := demov1.NewShopClient(conn).Buy(ctx, &demov1.BuyRequest{User: "ann",
							Purchase: &demov1.Purchase{Item: fmt.Sprint("k", i)}})
						if err != nil {
							return err
						}
					}
					return nil
				}
				task := func(ctx context.Context) (time.Duration, error) { return a.do(ctx, buy) }
				most := 380 * time.Millisecond // the first final commit, and a word on record for each other one
				if plain {
					most = 480 * time.Millisecond
					task = func(ctx context.Context) (time.Duration, error) {
						start := time.Now()
						err := buy(ctx)
						return time.Since(start), err
					}
				}
				for n := range 2 {
					took, err := task(ctx)
					if err != nil || took > most {
						a.Errorf("it took %v (at most %v): %v", took, most, err)
					}
					a.want(ctx, map[string]string{"k0": fmt.Sprint(n + 1), "k2": fmt.Sprint(n + 1)})
				}
				if a.commits.Load() != 2*services || a.refused.Load() != 0 {
					a.Errorf("%d transactions are committed, %d were refused", a.commits.Load(), a.refused.Load())
				}
			})
		})
	}
}

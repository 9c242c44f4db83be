// The program bftfront is a gRPC shop over a replicated key-value service of which one replica may
// lie: four replicas in this process, over the loopback interface with TLS and the delays of a
// wide-area network. A caller that speculates goes on with the primary's first reply; others, such
// as grpcurl, are told what the group has confirmed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// The network of the four replicas. The front is where the first primary is.
const roundTrip = 60 * time.Millisecond

func sites() []wan.Site { return []wan.Site{"montreal", "oregon", "texas", "virginia"} }

func run(out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "bftfront")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	group, err := service.OpenCluster(service.ClusterOptions{Dir: dir, Protocol: "pbft", Service: "kv", Replicas: 4,
		Clients: 1, WAN: wan.Uniform(roundTrip, sites()...), Sites: sites()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	cfg, err := group.Client(0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return service.WithClient(ctx, cfg, group.At(sites()[0]), func(ctx context.Context, c *service.Client) error {
		address, stop, err := serve(&front{group: typed(c.Client)})
		if err != nil {
			return err
		}
		defer stop()
		return visit(ctx, out, group, address)
	})
}

// serve starts the gRPC server of the front. That Buy stages its effects is what its calls to the
// group do: those that are made on guesses are conditional.
func serve(f *front) (address string, stop func(), err error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := specgrpc.NewServer(specgrpc.AllReplayable(), specgrpc.Stages(demov1.Shop_Buy_FullMethodName))
	demov1.RegisterShopServer(s, f)
	demov1.RegisterDataServiceServer(s, f)
	demov1.RegisterAnalysisServiceServer(s, analysis{})
	go func() { _ = s.Serve(lis) }() // ends with GracefulStop
	return lis.Addr().String(), s.GracefulStop, nil
}

// analysis is another service, which takes its time and has no effects.
type analysis struct {
	demov1.UnimplementedAnalysisServiceServer
}

// GetAI tells how many users share an interest.
func (analysis) GetAI(ctx context.Context, req *demov1.GetAIRequest) (*demov1.GetAIResponse, error) {
	select {
	case <-time.After(80 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &demov1.GetAIResponse{Users: uint32(len(req.GetInterests()[0]))}, nil
}

// purchase buys, and asks the other service about what was bought: ordinary sequential code.
func purchase(ctx context.Context, conn grpc.ClientConnInterface, item string) (string, error) {
	bought, err := demov1.NewShopClient(conn).Buy(ctx,
		&demov1.BuyRequest{User: "ann", Purchase: &demov1.Purchase{Item: item}})
	if err != nil {
		return "", err
	}
	interest := fmt.Sprint(item, " ", bought.GetNumber())
	ai, err := demov1.NewAnalysisServiceClient(conn).GetAI(ctx, &demov1.GetAIRequest{Interests: []string{interest}})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is purchase %d, of %d users", item, bought.GetNumber(), ai.GetUsers()), nil
}

// visit has a plain caller buy, and one that speculates, while the primary is honest and while it
// lies.
func visit(ctx context.Context, out io.Writer, group *service.Cluster, address string) error {
	plain, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer plain.Close()
	conn, err := specgrpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(control.CallSiteConfig{
			Name: demov1.Shop_Buy_FullMethodName, Effect: control.EffectStaged, ServerPredictions: true}))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ordinary(ctx, out, plain, "tea"); err != nil {
		return err
	}
	if err := speculate(ctx, out, conn, "cake"); err != nil {
		return err
	}
	// The next primary lies in its first replies, and the one before goes.
	if err := errors.Join(group.Betray(2, "lie-early"), group.Stop(1), group.Start(1)); err != nil {
		return err
	}
	fmt.Fprintln(out, "the primary lies from now on")
	if err := ordinary(ctx, out, plain, "milk"); err != nil {
		return err
	}
	if err := speculate(ctx, out, conn, "honey"); err != nil {
		return err
	}
	history, err := demov1.NewDataServiceClient(plain).GetPH(ctx, &demov1.GetPHRequest{User: "ann"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "purchases:", len(history.GetPurchases()))
	return nil
}

// ordinary buys as any gRPC client does.
func ordinary(ctx context.Context, out io.Writer, conn grpc.ClientConnInterface, item string) error {
	began := time.Now()
	text, err := purchase(ctx, conn, item)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "plain caller:", text)
	log.Printf("it took %v", time.Since(began).Round(time.Millisecond))
	return nil
}

// speculate buys as a task, which goes on before the purchase is confirmed.
func speculate(ctx context.Context, out io.Writer, conn grpc.ClientConnInterface, item string) error {
	began := time.Now()
	right, first := false, time.Duration(0)
	text, err := foresay.Do(ctx, func(ctx context.Context) (string, error) { return purchase(ctx, conn, item) },
		foresay.WithReport(func(r *report.Report) {
			for _, c := range r.Calls {
				if c.CallSite == demov1.Shop_Buy_FullMethodName && len(c.Predicted) > 0 {
					right, first = c.Match >= 0, c.Predicted[0]
				}
			}
		}))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "speculating caller: %s; it had a right first reply: %v\n", text, right)
	log.Printf("it went on after %v and took %v", first.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	return nil
}

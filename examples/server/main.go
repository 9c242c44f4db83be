// The program server shows what a server can do: answer early (GetPI), and take
// a call for a guess that may be wrong without doing anything that lasts (Buy).
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/specgrpc"
)

type server struct {
	demov1.UnimplementedAnalysisServiceServer
	demov1.UnimplementedShopServer

	known  sync.Map // what GetPI answered before, by user
	mu     sync.Mutex
	orders []string
}

// GetPI answers early what it answered before. What it learns is confirmed first.
func (s *server) GetPI(ctx context.Context, req *demov1.GetPIRequest) (*demov1.GetPIResponse, error) {
	if before, ok := s.known.Load(req.GetUser()); ok {
		_ = foresay.Predict(ctx, before) // fails only if nobody wants the call any more
	}
	s.mu.Lock()
	interest := [...]string{"chess", "chess", "jazz"}[len(s.orders)%3]
	s.mu.Unlock()
	if err := pause(ctx, 80*time.Millisecond); err != nil { // the analysis itself
		return nil, err
	}
	answer := &demov1.GetPIResponse{Interests: []string{interest}}
	foresay.OnCommit(ctx, func() { s.known.Store(req.GetUser(), proto.CloneOf(answer)) })
	return answer, nil
}

// Buy checks the user's credit at once, and takes the order when its caller is
// known to be right.
func (s *server) Buy(ctx context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	item := req.GetPurchase().GetItem()
	foresay.OnRollback(ctx, func() { fmt.Println("  shop: a guess was wrong, no order of a", item) })
	if err := pause(ctx, 50*time.Millisecond); err != nil { // the credit check
		return nil, err
	}
	if err := foresay.Barrier(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, item)
	foresay.OnCommit(ctx, func() { fmt.Println("  shop: receipt sent for a", item) })
	return &demov1.BuyResponse{Number: uint32(len(s.orders))}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// buy buys what the user is interested in: ordinary sequential code.
func buy(ctx context.Context, conn grpc.ClientConnInterface) (uint32, error) {
	pi, err := demov1.NewAnalysisServiceClient(conn).GetPI(ctx, &demov1.GetPIRequest{User: "ann"})
	if err != nil {
		return 0, err
	}
	book := &demov1.Purchase{Item: pi.GetInterests()[0] + " book"}
	resp, err := demov1.NewShopClient(conn).Buy(ctx, &demov1.BuyRequest{User: "ann", Purchase: book})
	return resp.GetNumber(), err
}

func main() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	s := specgrpc.NewServer(specgrpc.Stages(demov1.Shop_Buy_FullMethodName))
	impl := &server{}
	demov1.RegisterAnalysisServiceServer(s, impl)
	demov1.RegisterShopServer(s, impl)
	go func() { _ = s.Serve(lis) }() // ends with GracefulStop
	defer s.GracefulStop()

	conn, err := specgrpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(
			control.CallSiteConfig{Name: demov1.AnalysisService_GetPI_FullMethodName, ServerPredictions: true},
			control.CallSiteConfig{Name: demov1.Shop_Buy_FullMethodName, Effect: control.EffectStaged}))
	must(err)
	defer conn.Close()
	var last *report.Report
	for _, what := range []string{"nothing is known yet", "the early answer is right", "the early answer is wrong"} {
		start := time.Now()
		number, err := foresay.Do(context.Background(), func(ctx context.Context) (uint32, error) {
			return buy(ctx, conn)
		}, foresay.WithReport(func(r *report.Report) { last = r }))
		must(err)
		fmt.Printf("%s: order %d after %d ms\n", what, number, time.Since(start).Milliseconds())
	}
	must(last.WriteText(os.Stdout))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The program speculative is the program ordinary with Foresay, as docs/guide.md
// makes it: the two reads overlap once their answers can be guessed.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

// analysis knows what users like.
type analysis struct {
	demov1.UnimplementedAnalysisServiceServer
}

func (analysis) GetPI(ctx context.Context, _ *demov1.GetPIRequest) (*demov1.GetPIResponse, error) {
	if err := pause(ctx, 60*time.Millisecond); err != nil {
		return nil, err
	}
	return &demov1.GetPIResponse{Interests: []string{"chess"}}, nil
}

func (analysis) GetAI(ctx context.Context, req *demov1.GetAIRequest) (*demov1.GetAIResponse, error) {
	if err := pause(ctx, 60*time.Millisecond); err != nil {
		return nil, err
	}
	return &demov1.GetAIResponse{Popular: []*demov1.Popular{{Item: req.GetInterests()[0] + " book"}}}, nil
}

// shop takes orders.
type shop struct {
	demov1.UnimplementedShopServer
	mu     sync.Mutex
	orders []string
}

func (s *shop) Buy(ctx context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	if err := pause(ctx, 60*time.Millisecond); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, req.GetPurchase().GetItem())
	return &demov1.BuyResponse{Number: uint32(len(s.orders))}, nil
}

// pause stands for a server's work, which ends early if nobody wants it.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// purchase is the program's own work: three calls, each of which needs the
// answer of the one before.
func purchase(ctx context.Context, a demov1.AnalysisServiceClient, s demov1.ShopClient) (string, error) {
	pi, err := a.GetPI(ctx, &demov1.GetPIRequest{User: "ann"})
	if err != nil {
		return "", err
	}
	ai, err := a.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
	if err != nil {
		return "", err
	}
	best := &demov1.Purchase{Item: ai.GetPopular()[0].GetItem()}
	order, err := s.Buy(ctx, &demov1.BuyRequest{User: "ann", Purchase: best})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %d: %s", order.GetNumber(), best.GetItem()), nil
}

func main() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server := specgrpc.NewServer()
	demov1.RegisterAnalysisServiceServer(server, analysis{})
	demov1.RegisterShopServer(server, &shop{})
	go func() { _ = server.Serve(lis) }() // ends with GracefulStop
	defer server.GracefulStop()

	interests := predict.LastValue(func(r *demov1.GetPIRequest) string { return r.GetUser() }, 10_000)
	popular := predict.LastValue(func(r *demov1.GetAIRequest) string {
		return strings.Join(r.GetInterests(), ",")
	}, 10_000)
	conn, err := specgrpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(
			control.CallSiteConfig{Name: demov1.AnalysisService_GetPI_FullMethodName,
				Predictors: []control.Predictor{interests}},
			control.CallSiteConfig{Name: demov1.AnalysisService_GetAI_FullMethodName, Predictors: []control.Predictor{popular}}))
	must(err)
	defer conn.Close()
	for range 3 {
		start := time.Now()
		order, err := foresay.Do(context.Background(), func(ctx context.Context) (string, error) {
			return purchase(ctx, demov1.NewAnalysisServiceClient(conn), demov1.NewShopClient(conn))
		})
		must(err)
		fmt.Printf("%s, after %d ms\n", order, time.Since(start).Milliseconds())
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

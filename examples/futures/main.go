// The program futures reads a user's history from three replicas and takes what
// two of them agree on. What depends on it starts with the nearest replica's
// answer.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/specgrpc"
)

// replica is a data server that is some way off, and an analysis server.
type replica struct {
	demov1.UnimplementedDataServiceServer
	demov1.UnimplementedAnalysisServiceServer
	far  time.Duration
	last string // the interest of the newest purchase that it knows of
}

func (r *replica) GetPH(ctx context.Context, _ *demov1.GetPHRequest) (*demov1.GetPHResponse, error) {
	return &demov1.GetPHResponse{Purchases: []*demov1.Purchase{{Interest: r.last}}}, pause(ctx, r.far)
}

func (r *replica) GetAI(ctx context.Context, req *demov1.GetAIRequest) (*demov1.GetAIResponse, error) {
	return &demov1.GetAIResponse{Popular: []*demov1.Popular{{Item: req.GetInterests()[0] + " almanac"}}},
		pause(ctx, 50*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open starts a server and connects to it.
func open(r *replica) (conn *specgrpc.ClientConn, stop func(), err error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := specgrpc.NewServer()
	demov1.RegisterDataServiceServer(server, r)
	demov1.RegisterAnalysisServiceServer(server, r)
	go func() { _ = server.Serve(lis) }() // ends with GracefulStop
	conn, err = specgrpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn))
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return conn, func() {
		conn.Close()
		server.GracefulStop()
	}, nil
}

// recommend asks all replicas at once and waits for what two of them say.
func recommend(
	ctx context.Context, replicas []demov1.DataServiceClient, analysis demov1.AnalysisServiceClient,
) (string, error) {
	var reads []*foresay.Future[*demov1.GetPHResponse]
	for _, r := range replicas {
		reads = append(reads, foresay.Go(ctx, func(ctx context.Context) (*demov1.GetPHResponse, error) {
			return r.GetPH(ctx, &demov1.GetPHRequest{User: "ann"})
		}))
	}
	agreed := foresay.Quorum(2, nil, reads...)
	popular := foresay.Then(agreed, func(ctx context.Context, h *demov1.GetPHResponse) (*demov1.GetAIResponse, error) {
		return analysis.GetAI(ctx, &demov1.GetAIRequest{Interests: []string{h.GetPurchases()[0].GetInterest()}})
	})
	answer, err := popular.Wait(ctx)
	if err != nil {
		return "", err
	}
	return answer.GetPopular()[0].GetItem(), nil
}

// try plays with a nearest replica that knows this interest.
func try(ctx context.Context, what, nearest string) error {
	var replicas []demov1.DataServiceClient
	var analysis demov1.AnalysisServiceClient
	for i, r := range []*replica{{far: 80, last: "jazz"}, {far: 60, last: "jazz"}, {far: 10, last: nearest}} {
		r.far *= time.Millisecond
		conn, stop, err := open(r)
		if err != nil {
			return err
		}
		defer stop()
		replicas = append(replicas, demov1.NewDataServiceClient(conn))
		analysis = demov1.NewAnalysisServiceClient(conn)
		if _, err := replicas[i].GetPH(ctx, &demov1.GetPHRequest{}); err != nil { // opens the connection
			return err
		}
	}
	start := time.Now()
	item, err := recommend(ctx, replicas, analysis)
	fmt.Printf("%-26s a %s is recommended after %3d ms\n", what, item, time.Since(start).Milliseconds())
	return err
}

func main() {
	ctx := context.Background()
	if err := try(ctx, "all replicas up to date:", "jazz"); err != nil {
		log.Fatal(err)
	}
	if err := try(ctx, "the nearest one stale:", "chess"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one after the other this takes 60 + 50 ms, and 80 + 50 ms")
}

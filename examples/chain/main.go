// The program chain follows four gifts from one user to the next: four calls,
// each of which needs the answer of the one before. It does so plainly, then
// with predictions that are all right, then with one that is wrong.
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

const (
	calls = 4
	work  = 50 * time.Millisecond // that the server takes for a call
)

// dataServer knows what each user gave last, and to whom.
type dataServer struct {
	demov1.UnimplementedDataServiceServer
	gifts map[string]string
}

func (s *dataServer) GetPH(ctx context.Context, req *demov1.GetPHRequest) (*demov1.GetPHResponse, error) {
	select {
	case <-time.After(work):
		return history(s.gifts[req.GetUser()]), nil
	case <-ctx.Done(): // nobody wants the answer any more
		return nil, ctx.Err()
	}
}

func history(receiver string) *demov1.GetPHResponse {
	return &demov1.GetPHResponse{Purchases: []*demov1.Purchase{{Item: receiver, Interest: "gifts"}}}
}

// follow is ordinary sequential code. Where guesses has an entry, it is offered
// as a prediction of the call's response.
func follow(ctx context.Context, data demov1.DataServiceClient, guesses map[string]string) (string, error) {
	user := "ann"
	for range calls {
		call := ctx
		if guess, ok := guesses[user]; ok {
			call = foresay.Predicting(ctx, history(guess))
		}
		h, err := data.GetPH(call, &demov1.GetPHRequest{User: user})
		if err != nil {
			return "", err
		}
		user = h.GetPurchases()[0].GetItem()
	}
	return user, nil
}

func run(ctx context.Context) error {
	gifts := map[string]string{"ann": "bob", "bob": "cay", "cay": "dan", "dan": "eve", "kim": "lea", "lea": "max"}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := specgrpc.NewServer()
	demov1.RegisterDataServiceServer(server, &dataServer{gifts: gifts})
	go func() { _ = server.Serve(lis) }() // ends with GracefulStop
	defer server.GracefulStop()

	conn, err := specgrpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn))
	if err != nil {
		return err
	}
	defer conn.Close()
	data := demov1.NewDataServiceClient(conn)
	if _, err := follow(ctx, data, nil); err != nil { // opens the connection
		return err
	}

	stale := map[string]string{"ann": "bob", "bob": "kim", "cay": "dan", "dan": "eve", "kim": "lea", "lea": "max"}
	for _, try := range []struct {
		name    string
		guesses map[string]string
	}{{"plainly", nil}, {"all predictions right", gifts}, {"the second one wrong", stale}} {
		start := time.Now()
		end, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
			return follow(ctx, data, try.guesses)
		})
		if err != nil {
			return err
		}
		fmt.Printf("%-22s the last gift went to %s, found out in %3d ms\n", try.name+":", end,
			time.Since(start).Milliseconds())
	}
	stats := conn.CallSite(demov1.DataService_GetPH_FullMethodName).Stats()
	fmt.Printf("\n%d calls made, %d of them in vain\n", stats.Calls, stats.Abandoned)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

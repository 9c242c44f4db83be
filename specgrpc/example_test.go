package specgrpc_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// shouting answers with the key in capitals.
type shouting struct{ kvpb.UnimplementedTestKVServer }

func (shouting) Get(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return &kvpb.GetResponse{Value: strings.ToUpper(r.GetKey())}, nil
}

// A server is made by NewServer, a client by NewClient, and
// the generated code stays as it is. The second call runs on the guess at the
// first one's response; the guess is wrong, and the result is right.
func Example() {
	listener := bufconn.Listen(1 << 16)
	server := specgrpc.NewServer()
	kvpb.RegisterTestKVServer(server, shouting{})
	go func() { _ = server.Serve(listener) }()

	conn, err := specgrpc.NewClient("passthrough:///memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		specgrpc.WithCallSites(control.CallSiteConfig{Name: kvpb.TestKV_Get_FullMethodName, Mode: control.ModeOn,
			Ordered: true}))
	if err != nil {
		log.Fatal(err)
	}
	client := kvpb.NewTestKVClient(conn)

	got, err := foresay.Do(context.Background(), func(ctx context.Context) (string, error) {
		guess := &kvpb.GetResponse{Value: "WHISPER"}
		first, err := client.Get(foresay.Predicting(ctx, guess), &kvpb.GetRequest{Key: "hello"})
		if err != nil {
			return "", err
		}
		second, err := client.Get(ctx, &kvpb.GetRequest{Key: first.GetValue() + ", world"})
		return second.GetValue(), err
	})
	fmt.Println(got, err)
	stats := conn.CallSite(kvpb.TestKV_Get_FullMethodName).Stats()
	fmt.Println(stats.Right, "right,", stats.Wrong, "wrong")

	conn.Close()
	server.GracefulStop()
	// Output:
	// HELLO, WORLD <nil>
	// 0 right, 1 wrong
}

// Call sites can be configured by a file.
func ExampleParseCallSites() {
	sites, err := specgrpc.ParseCallSites([]byte(`{"sites": [
		{"method": "/foresay.testkv.v1.TestKV/Get", "ordered": true, "equal_ignoring": ["version"]},
		{"method": "/foresay.testkv.v1.TestKV/Put", "effect": "staged", "conflict_fields": ["key"]}
	]}`), nil)
	fmt.Println(len(sites), sites[1].Effect, err)

	_, err = specgrpc.ParseCallSites([]byte(`{"sites": [
		{"method": "/foresay.testkv.v1.TestKV/Get", "mode": "sometimes"}
	]}`), nil)
	fmt.Println(err)
	// Output:
	// 2 staged <nil>
	// specgrpc: sites: line 2: method /foresay.testkv.v1.TestKV/Get: field "mode": "sometimes" is not one of off, observe, shadow, canary, on
}

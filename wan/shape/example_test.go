package shape_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func Example() {
	n := shape.NewNetwork(wan.Uniform(10*time.Millisecond, "client", "a", "b"), 1)
	defer n.Close()

	l, err := n.Listen("a")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	defer server.Stop()

	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithContextDialer(n.DialContext("client")),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer cc.Close()

	start := time.Now()
	response, err := healthpb.NewHealthClient(cc).Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.GetStatus(), "from", l.Addr())
	fmt.Println("with the handshakes of TCP and HTTP/2 it took three round trips:",
		time.Since(start) >= 30*time.Millisecond)
	// Output:
	// SERVING from a:1
	// with the handshakes of TCP and HTTP/2 it took three round trips: true
}

func ExampleNetwork_Crash() {
	n := shape.NewNetwork(wan.Uniform(10*time.Millisecond, "client", "a"), 1)
	defer n.Close()
	l, err := n.Listen("a")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "so far")
		n.Crash("a")
	}()
	c, err := n.Dial(context.Background(), "client", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	_, err = io.ReadAll(c)
	fmt.Println(err)
	_, err = n.Dial(context.Background(), "client", l.Addr().String())
	fmt.Println(err)
	// Output:
	// read wan client:32768->a:1: read: connection reset by peer
	// shape: dial a:1 from client: connection refused
}

func ExampleNetwork_Wrap() {
	n := shape.NewLoopback(wan.Uniform(10*time.Millisecond, "client", "a"), 1)
	defer n.Close()
	raw, other := net.Pipe() // or a connection to another process, which wraps its own end
	c, err := n.Wrap(raw, wan.Path{From: "client", To: "a"})
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	fmt.Fprint(c, "hello")
	c.Close()
	text, err := io.ReadAll(other)
	fmt.Println(string(text), err, time.Since(start) >= 5*time.Millisecond)
	// Output:
	// hello <nil> true
}

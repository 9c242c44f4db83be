package main

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// network is what the front, the services and the customers talk over.
type network interface {
	Listen(at wan.Site) (net.Listener, error)
	Dial(ctx context.Context, from wan.Site, address string) (net.Conn, error)
	Close() error
}

// Where the parties are.
const (
	customers wan.Site = "customers"
	frontSite wan.Site = "front"
)

func serviceSites() []wan.Site { return []wan.Site{"users", "permissions", "pricing", "stock"} }

// server is a grpc.Server or a specgrpc.Server.
type server interface {
	grpc.ServiceRegistrar
	Serve(net.Listener) error
	GracefulStop()
}

// services are the four services, each on a server of its own.
type services struct {
	backend   *backend
	listeners []net.Listener
	stops     []func()
	loops     sync.WaitGroup
}

// startServices starts them, if prepared so that they can be called on a guess.
// They are to be stopped, also after an error.
func startServices(n network, seed uint64, prepared bool) (*services, error) {
	s := &services{backend: &backend{seed: seed, data: newData(seed)}}
	for i, site := range serviceSites() {
		lis, err := n.Listen(site)
		if err != nil {
			return s, err
		}
		s.listeners = append(s.listeners, lis)
		var own server = grpc.NewServer()
		if prepared {
			own = specgrpc.NewServer()
		}
		s.backend.register(i, own)
		s.stops = append(s.stops, own.GracefulStop)
		s.loops.Go(func() { _ = own.Serve(lis) }) // ends with the stop
	}
	return s, nil
}

// stop stops the services when they are done with what they do.
func (s *services) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.loops.Wait()
}

package main

import (
	"context"
	"net"

	"github.com/foresay/foresay/wan"
)

// network is what the front, the services and the customers talk over.
type network interface {
	Listen(at wan.Site) (net.Listener, error)
	Dial(ctx context.Context, from wan.Site, address string) (net.Conn, error)
	Close() error
}

// loopback is this machine's loopback interface, where all sites are.
type loopback struct{}

func (loopback) Listen(wan.Site) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (loopback) Dial(ctx context.Context, _ wan.Site, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func (loopback) Close() error { return nil }

package calls

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// A network connects callers and servers, each at a site of its own.
type network interface {
	Listen(at wan.Site) (net.Listener, error)
	Dial(ctx context.Context, from wan.Site, address string) (net.Conn, error)
	Close() error
}

// newNetwork returns a network between the callers' site and the servers' sites.
func newNetwork(mode bench.Mode, top topology) network {
	sites := []wan.Site{callersSite}
	for i := range top.servers {
		sites = append(sites, serverSite(i))
	}
	matrix := wan.Uniform(top.rtt, sites...)
	if top.repeatable {
		for i := range top.servers {
			from := callersSite
			if top.forward && i > 0 {
				from = serverSite(i - 1)
			}
			matrix = matrix.WithRTT(from, serverSite(i), top.rtt+time.Duration(i+1))
		}
	}
	switch {
	case mode == bench.Virtual:
		return shape.NewNetwork(matrix, 0)
	case top.rtt > 0:
		return shape.NewLoopback(matrix, 0)
	}
	return shape.Undelayed{}
}

// counted counts the bytes that dialled connections carry, in both directions.
type counted struct {
	network
	bytes atomic.Int64
}

func (c *counted) Dial(ctx context.Context, from wan.Site, address string) (net.Conn, error) {
	conn, err := c.network.Dial(ctx, from, address)
	if err != nil {
		return nil, err
	}
	return countedConn{Conn: conn, bytes: &c.bytes}, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b))) // before an answer to them can come
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n - len(b)))
	return n, err
}

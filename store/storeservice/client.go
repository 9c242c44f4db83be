package storeservice

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/replicatedcommit/rcgrpc"
	"github.com/foresay/foresay/store/storeconfig"
)

// ClientOptions are what a client takes beside its file. The zero value is right for a process of its own.
type ClientOptions struct {
	// Dial connects to a machine. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// RoundTrip is what the client's patience with a machine follows from, if it is longer than the store's: for large transactions, say.
	RoundTrip time.Duration
}

// A Client is connected to a store. Its methods may be called concurrently.
type Client struct {
	// Conn is the connection to all sites, which clients of package store/client are made of.
	Conn *rcgrpc.Conn

	cfg *storeconfig.ClientConfig
}

// Dial returns a client; machines are connected to when they are needed. It must be closed.
func Dial(cfg *storeconfig.ClientConfig, o ClientOptions) (*Client, error) {
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	conn, err := rcgrpc.Dial(rcgrpc.Config{
		Topology: cfg.Store.Topology(), TLS: tlsConfig, Insecure: cfg.Insecure, Dial: o.Dial, RoundTrip: max(cfg.Store.RoundTripTime(), o.RoundTrip),
	})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Client{Conn: conn, cfg: cfg}, nil
}

// Close ends all calls.
func (c *Client) Close() { c.Conn.Close() }

// Transactions returns what makes transactions in a mode. attempts bounds how often each is tried; 0 is until its context ends.
func (c *Client) Transactions(mode client.Mode, attempts int) (*client.Client, error) {
	return client.New(client.Config{Backend: c.Conn, Mode: mode, MaxAttempts: attempts})
}

// A Distance is how far a client is from a site.
type Distance struct {
	Site      string
	RoundTrip time.Duration
}

// probes is how many round trips are measured of each site; the shortest counts.
const probes = 3

// Distances measures how far the sites are, in the order of the round trips; sites that do not answer before ctx is done are missing.
func (c *Client) Distances(ctx context.Context) []Distance {
	var mu sync.Mutex
	var out []Distance
	var wg sync.WaitGroup
	for _, site := range c.cfg.Store.Sites {
		if site.Fenced {
			continue
		}
		wg.Go(func() {
			best := time.Duration(-1)
			for range probes + 1 { // the first one may make the connection
				start := time.Now()
				if _, err := c.Conn.Status(ctx, site.Machines[0].Name); err != nil {
					return
				}
				if took := time.Since(start); best < 0 || took < best {
					best = took
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, Distance{site.Name, best})
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b Distance) int { return int(a.RoundTrip - b.RoundTrip) })
	return out
}

// Floor returns the least time that a transaction of several reads takes for a client at these distances: one round trip to the nearest majority of a number of sites. ok is false if too few
// answered.
func Floor(distances []Distance, sites int) (floor time.Duration, ok bool) {
	majority := sites/2 + 1
	if len(distances) < majority {
		return 0, false
	}
	return distances[majority-1].RoundTrip, true
}

// Sites returns how many sites the store has, fenced ones included: majorities are of all of them.
func (c *Client) Sites() int { return len(c.cfg.Store.Sites) }

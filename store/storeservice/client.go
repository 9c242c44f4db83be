package storeservice

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/mvcc"
	"github.com/foresay/foresay/store/storeconfig"
)

// ClientOptions are what a client takes beside its file. The zero value is right for a process of
// its own.
type ClientOptions struct {
	// Dial connects to a machine. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// RoundTrip is what the client's patience with a machine follows from, if it is longer than the
	// store's: for large transactions, say.
	RoundTrip time.Duration
	// Logger is told when the client goes on in a later epoch than that of its file. nil: none.
	Logger *slog.Logger
}

// A Client is connected to a store, and follows it into later epochs. It is the backend of clients
// of package store/client. Its methods may be called concurrently.
type Client struct {
	cfg *storeconfig.ClientConfig
	o   ClientOptions
	tls *tls.Config
	log *slog.Logger

	background sync.WaitGroup
	closing    chan struct{} // is closed when the client is
	mu         sync.Mutex
	link       *link
	closed     bool
}

// Dial returns a client; machines are connected to when they are needed. It must be closed.
func Dial(cfg *storeconfig.ClientConfig, o ClientOptions) (*Client, error) {
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := &Client{cfg: cfg, o: o, tls: tlsConfig, log: o.Logger, closing: make(chan struct{})}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.link, err = c.connect(cfg.Store); err != nil {
		return nil, err
	}
	c.background.Go(c.watch)
	return c, nil
}

// Close ends all calls.
func (c *Client) Close() {
	c.mu.Lock()
	if !c.closed {
		close(c.closing)
	}
	c.closed = true
	l := c.link
	c.mu.Unlock()
	l.conn.Close()
	c.background.Wait()
}

// Transactions returns what makes transactions in a mode. attempts bounds how often each is tried;
// 0 is until its context ends.
func (c *Client) Transactions(mode client.Mode, attempts int) (*client.Client, error) {
	return client.New(client.Config{Backend: c, Mode: mode, MaxAttempts: attempts})
}

// A Distance is how far a client is from a site.
type Distance struct {
	Site      string
	RoundTrip time.Duration
}

// probes is how many round trips are measured of each site; the shortest counts.
const probes = 3

// Distances measures how far the sites are, in the order of the round trips; sites that do not
// answer before ctx is done are missing.
func (c *Client) Distances(ctx context.Context) []Distance {
	var mu sync.Mutex
	var out []Distance
	var wg sync.WaitGroup
	l := c.newest()
	for _, site := range l.store.Sites {
		if site.Fenced {
			continue
		}
		wg.Go(func() {
			best := time.Duration(-1)
			for range probes + 1 { // the first one may make the connection
				start := time.Now()
				if _, err := l.conn.Status(ctx, site.Machines[0].Name); err != nil {
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

// Majority returns the round trip that completes the nearest majority of a number of sites. ok is
// false if too few answered.
func Majority(distances []Distance, sites int) (trip time.Duration, ok bool) {
	majority := sites/2 + 1
	if len(distances) < majority {
		return 0, false
	}
	return distances[majority-1].RoundTrip, true
}

// Page returns a page of the snapshot of a timestamp, as front.Conn.Page does.
func (c *Client) Page(ctx context.Context, shard int, at clock.Stamp, from mvcc.Cursor) (store.PageReply, error) {
	return c.newest().conn.Page(ctx, shard, at, from)
}

// Store returns the store's file, of the latest epoch that is known.
func (c *Client) Store() *storeconfig.Store { return c.newest().store }

// Sites returns how many sites the store has, fenced ones included: majorities are of all of them.
func (c *Client) Sites() int { return len(c.newest().store.Sites) }

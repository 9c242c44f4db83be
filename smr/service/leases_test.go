package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/smr/kv"
)

func (w *world) dialed() *Client {
	w.Helper()
	c, err := Dial(w.cfg, ClientOptions{Dial: w.net.DialContext("z")})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c
}

// leaseEnd waits until a key is not there, and returns how long that took.
func (w *world) leaseEnd(ctx context.Context, c *Client, key string) time.Duration {
	w.Helper()
	began := time.Now()
	if _, err := c.at(key).awaitRelease(ctx, key, 0); err != nil || ctx.Err() != nil {
		w.Fatalf("the key %q did not go: %v, %v", key, err, ctx.Err())
	}
	return time.Since(began)
}

// TestLeases: keys of a lease stay while it is renewed, with the replica down that ends leases
// first, and go when it is not renewed any more.
func TestLeases(t *testing.T) {
	for _, name := range protocolNames() {
		t.Run(name, func(t *testing.T) { inWorld(t, name, testLeases) })
	}
}

func testLeases(w *world) {
	first := w.start(1)
	w.start(2)
	w.start(3)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := w.dialed()
	const ttl = 2 * time.Second
	lease, err := c.Grant(ctx, ttl)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := c.PutLeased(ctx, "member/1", []byte("a"), lease); err != nil {
		w.Fatal(err)
	}
	keeping, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	kept := make(chan error, 1)
	go func() { kept <- c.Keep(keeping, lease, ttl) }()
	time.Sleep(10 * time.Second)
	if err := first.end(); err != nil {
		w.Fatal(err)
	}
	time.Sleep(9 * time.Second)
	if item, found, err := c.Get(ctx, "member/1"); err != nil || !found || item.Lease != lease {
		w.Errorf("the key of a lease that is renewed: %+v, %v, %v", item, found, err)
	}
	if err := <-kept; err != nil {
		w.Errorf("Keep: %v", err)
	}
	if took := w.leaseEnd(ctx, c, "member/1"); took < ttl/2 || took > 2*ttl {
		w.Errorf("the key went after %v, want about %v", took, ttl)
	}
	leases, err := c.Leases(ctx)
	if err != nil || len(leases) != 0 {
		w.Errorf("the leases are %v, %v; want none", leases, err)
	}
	_, err = c.PutLeased(ctx, "member/1", nil, lease)
	if err := c.Keep(ctx, lease, 0); err == nil || !strings.Contains(err.Error(), "no lease has a TTL of 0s") {
		w.Errorf("Keep with no TTL: %v", err)
	}
	for name, err := range map[string]error{"renewal": c.KeepAlive(ctx, lease), "revocation": c.Revoke(ctx, lease),
		"put": err} {
		if ended, ok := errors.AsType[*LeaseEndedError](err); !ok || ended.Err != nil {
			w.Errorf("a %s with a lease that has ended: %v", name, err)
		}
	}
}

// TestLocks: two clients take turns with a lock, and the tokens rise. One that is cut off loses it,
// and is told before another one has it.
func TestLocks(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		var (
			group   sync.WaitGroup
			mu      sync.Mutex
			holders int
			tokens  []uint64
		)
		for i := range 4 {
			c := w.dialed()
			group.Go(func() {
				for range 5 {
					err := c.WithLock(ctx, "lock", time.Minute, func(_ context.Context, token uint64) error {
						mu.Lock()
						holders++
						tokens = append(tokens, token)
						if holders != 1 || len(tokens) > 1 && token <= tokens[len(tokens)-2] {
							w.Errorf("%d have the lock, tokens %v", holders, tokens)
						}
						mu.Unlock()
						time.Sleep(30 * time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						holders--
						return nil
					})
					if err != nil {
						w.Errorf("client %d: %v", i, err)
					}
				}
			})
		}
		group.Wait()
		if len(tokens) != 20 {
			w.Errorf("the lock was had %d times, want 20", len(tokens))
		}
	})
}

// TestLostLock: a holder of a lock whose client is closed, or whose lease is revoked, is told so by
// its context.
func TestLostLock(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		other := w.dialed()
		for what, lose := range map[string]func(c *Client, lease kv.LeaseID) error{
			"closed":  func(c *Client, _ kv.LeaseID) error { return c.Close() },
			"revoked": func(_ *Client, lease kv.LeaseID) error { return other.Revoke(ctx, lease) },
		} {
			c := w.dialed()
			began := time.Now()
			err := c.WithLock(ctx, "lock", 3*time.Second, func(held context.Context, _ uint64) error {
				item, _, err := other.Get(ctx, "lock")
				if err == nil {
					err = lose(c, item.Lease)
				}
				if err != nil {
					return err
				}
				<-held.Done()
				return fmt.Errorf("stopped: %w", context.Cause(held))
			})
			if _, ok := errors.AsType[*LeaseEndedError](err); !ok || strings.Count(err.Error(), "lease") != 1 {
				w.Errorf("%s: WithLock returned %v", what, err)
			}
			if took := time.Since(began); took > 4*time.Second {
				w.Errorf("%s: it was told after %v", what, took)
			}
			w.leaseEnd(ctx, other, "lock")
		}
	})
}

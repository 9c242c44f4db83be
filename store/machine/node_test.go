package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// world is a store at the sites of a network, a machine each, in a bubble.
type world struct {
	*testing.T
	net            *shape.Network
	sites          []wan.Site
	topology       store.Topology
	peers, clients []net.Listener // of the machines
	protocol       store.Protocol
	nodes          []*Node // those that were started
	stop           []func()
}

// newWorld starts all machines.
func newWorld(t *testing.T, m wan.Matrix, options ...func(*world)) *world {
	w := newIdleWorld(t, m)
	for _, o := range options {
		o(w)
	}
	for i := range w.sites {
		w.start(i)
	}
	return w
}

func newIdleWorld(t *testing.T, m wan.Matrix) *world {
	w := &world{T: t, net: shape.NewNetwork(m, 1), sites: m.Sites(), topology: store.Topology{Epoch: 1, Shards: 3},
		protocol: replicatedcommit.Protocol()}
	for i, site := range w.sites {
		w.peers, w.clients = append(w.peers, w.listen(site)), append(w.clients, w.listen(site))
		w.topology.Sites = append(w.topology.Sites, store.TopologySite{
			Name: string(site), Number: i + 1, Machines: []store.Machine{{
				Name: string(site) + "-1", Peers: w.peers[i].Addr().String(), Client: w.clients[i].Addr().String(),
			}},
		})
	}
	return w
}

// start starts the machine at a site.
func (w *world) start(i int, options ...func(*Config)) {
	site := w.sites[i]
	cfg := Config{
		Protocol: w.protocol, Cluster: "test", Topology: w.topology, Machine: string(site) + "-1",
		PeerListener: w.peers[i], ClientListener: w.clients[i], PeerDial: w.net.DialContext(site),
		Insecure: true, Seed: uint64(i + 1), Check: true,
	}
	for _, o := range options {
		o(&cfg)
	}
	n, err := Open(cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.nodes = append(w.nodes, n)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	w.stop = append(w.stop, func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("machine at %s: %v", site, err)
		}
	})
}

func (w *world) listen(site wan.Site) net.Listener {
	l, err := w.net.Listen(site)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

func (w *world) client(site wan.Site, mode client.Mode, options ...func(*client.Config)) *client.Client {
	conn, err := front.Dial(front.Config{Protocol: w.protocol, Topology: w.topology, Insecure: true,
		Dial: w.net.DialContext(site), Seed: uint64(len(w.stop) + 10)})
	if err != nil {
		w.Fatal(err)
	}
	w.stop = append([]func(){conn.Close}, w.stop...)
	cfg := client.Config{Backend: conn, Mode: mode}
	for _, o := range options {
		o(&cfg)
	}
	c, err := client.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) close() {
	for _, f := range w.stop {
		f()
	}
	w.net.Close()
}

// TestLatencies: a transaction of four dependent reads takes five round trips to the nearest other
// site without the engine's guesses, two with them.
func TestLatencies(t *testing.T) {
	for _, tc := range []struct {
		mode client.Mode
		want time.Duration
	}{{client.GRPC, 500 * time.Millisecond}, {client.Off, 500 * time.Millisecond}, {client.Spec, 200 * time.Millisecond},
		{client.Predicated, 100 * time.Millisecond}} {
		t.Run(tc.mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
				defer w.close()
				c := w.client("a", tc.mode)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				f := func(ctx context.Context, tx *client.Tx) error {
					key := "k"
					for range 4 {
						v, _, err := tx.Get(ctx, key)
						if err != nil {
							return err
						}
						key += string(v) + "."
					}
					return tx.Put("last", []byte(key))
				}
				for range 3 { // connections are made, clocks seen
					if err := c.Txn(ctx, f); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second) // locks are gone
				var trace *client.Trace
				start := time.Now()
				if err := c.Txn(client.WithTrace(ctx, func(tr *client.Trace) { trace = tr }), f); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("it took %v, want %v", took, tc.want)
				}
				if len(trace.Reads) != 4 || trace.Outcome.Verdict != store.Committed || trace.Ended != tc.want ||
					trace.Commit != tc.want-100*time.Millisecond {
					t.Errorf("the trace is %+v", trace)
				}
				for _, r := range trace.Reads {
					if right := r.Right && r.Known-r.Asked == 100*time.Millisecond; r.FirstSite != "a" || !right &&
						tc.mode != client.Predicated {
						t.Errorf("a read is %+v", r)
					}
				}
			})
		})
	}
}

// TestCounters has clients of all modes at all sites add to the same counters.
func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(50*time.Millisecond, "a", "b", "c"))
		defer w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		const each = 5
		var wg sync.WaitGroup
		for i, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated, client.Predicated} {
			c := w.client([]wan.Site{"a", "b", "c"}[i%3], mode)
			for j := range each {
				wg.Go(func() {
					for _, key := range []string{"x", fmt.Sprint("y", j%2)} {
						err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
							v, _, err := tx.Get(ctx, key)
							if err != nil {
								return err
							}
							return tx.Put(key, append(v, '+'))
						})
						if err != nil {
							t.Errorf("client %d in mode %v: %v", i, mode, err)
						}
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(3 * time.Second) // decisions are carried out
		for _, n := range w.nodes {
			st, err := n.Status(ctx)
			if err != nil || len(st.Shards) != 3 {
				t.Fatalf("the status is %v, %v", st, err)
			}
			for _, s := range st.Shards {
				// shard 1 has none of the keys
				if !s.Admitted || s.Undecided+s.Locks+s.Wanting+s.Waiting != 0 || s.Shard != 1 && s.Transactions == 0 {
					t.Errorf("a shard of machine %s is left as %v", st.Machine, s)
				}
			}
		}
		n, err := client.Run(ctx, w.client("b", client.Spec), func(ctx context.Context, tx *client.Tx) (map[string]int,
			error) {
			n := map[string]int{}
			for _, key := range []string{"x", "y0", "y1"} {
				v, _, err := tx.Get(ctx, key)
				if err != nil {
					return nil, err
				}
				n[key] = len(v)
			}
			return n, nil
		})
		if err != nil || n["x"] != 5*each || n["y0"]+n["y1"] != 5*each {
			t.Errorf("the counters are %v (%v), want %d and as many in two", n, err, 5*each)
		}
	})
}

// TestRefusalBringsTheValue: a predicated transaction that read an old value is tried again with
// the new one, which came with the refusal.
func TestRefusalBringsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
		defer w.close()
		c, other := w.client("a", client.Predicated, func(cfg *client.Config) {
			cfg.QuorumAfter = time.Hour
		}), w.client("b", client.Spec)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		put := func(value string) {
			err := other.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", []byte(value)) })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		read := func(ctx context.Context, meanwhile func()) (string, error) {
			return client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
				v, _, err := tx.Get(ctx, "k")
				if err == nil && meanwhile != nil && tx.Attempt() == 1 {
					meanwhile()
				}
				return string(v), err
			})
		}
		put("one")
		for range 2 { // the sites' distances are known
			if _, err := read(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		var traces []client.Trace
		got, err := read(client.WithTrace(ctx, func(tr *client.Trace) { traces = append(traces, *tr) }), func() {
			put("two")
		})
		if err != nil || got != "two" || len(traces) != 2 {
			t.Fatalf("it read %q (%v) in attempts %+v", got, err, traces)
		}
		first, second := traces[0], traces[1]
		if first.Outcome.Reason != store.StaleRead || first.Ended-first.Commit != 100*time.Millisecond {
			t.Errorf("the first attempt was %+v", first)
		}
		if second.Reads[0].FirstSite != "refusal" || second.Ended-second.Began != 100*time.Millisecond ||
			second.Began != first.Ended {
			t.Errorf("the second attempt was %+v", second)
		}
	})
}

// TestLoopOnReadsThatDoNotGoTogether: two keys are always written together, and a function waits
// for ever if they differ. Reads at different times may show it one without the other. In mode
// Predicated a quorum is asked then, and the function runs again at once; in other modes what it
// has read is validated after a while.
func TestLoopOnReadsThatDoNotGoTogether(t *testing.T) {
	for _, tc := range []struct {
		mode     client.Mode
		attempts int
	}{{client.Predicated, 1}, {client.Spec, 2}, {client.GRPC, 2}} {
		t.Run(tc.mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
				defer w.close()
				c, other := w.client("a", tc.mode), w.client("b", client.Spec)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for range 2 {
					if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
						_, _, err := tx.Get(ctx, "x")
						return err
					}); err != nil {
						t.Fatal(err)
					}
				}
				var once sync.Once
				attempts := 0
				got, err := client.Run(client.WithTrace(ctx, func(tr *client.Trace) {
					attempts = tr.Attempt
				}), c, func(ctx context.Context, tx *client.Tx) (string, error) {
					x, _, err := tx.Get(ctx, "x")
					if err != nil {
						return "", err
					}
					once.Do(func() {
						time.Sleep(200 * time.Millisecond) // the quorum has answered, where it is asked
						err = other.Txn(context.Background(), func(_ context.Context, tx *client.Tx) error {
							return errors.Join(tx.Put("x", []byte("1")), tx.Put("y", []byte("1")))
						})
						time.Sleep(100 * time.Millisecond)
					})
					if err != nil {
						return "", err
					}
					y, _, err := tx.Get(ctx, "y")
					if err != nil {
						return "", err
					}
					if string(x) != string(y) {
						<-ctx.Done() // as if it would loop
						return "", ctx.Err()
					}
					return string(x) + string(y), nil
				})
				if err != nil || got != "11" || attempts != tc.attempts {
					t.Errorf("it returned %q, %v in %d attempts, want %d", got, err, attempts, tc.attempts)
				}
			})
		})
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

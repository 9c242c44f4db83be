package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	smrclient "github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// world is replicas in a bubble, with real disks and keys, over a network in memory. Replica 1 is
// at a, and so on; clients are at z.
type world struct {
	*testing.T
	dir string
	net *shape.Network
}

var worldSites = []wan.Site{"a", "b", "c", "d", "z"}

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	dir := t.TempDir()
	_, err := Init(InitOptions{Dir: dir, Protocol: "pbft", Service: "counter", Cluster: "test", RoundTrip: "20ms",
		Addresses: []string{"a:1", "b:1", "c:1", "d:1"}, Clients: 2})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		test(&world{T: t, dir: dir, net: shape.NewNetwork(wan.Uniform(10*time.Millisecond, worldSites...), 1)})
	})
}

// ran is a replica that runs.
type ran struct {
	*Replica
	stop context.CancelFunc
	done chan error
	log  *bytes.Buffer // read it after the end
}

func (w *world) config(id protocol.ID) *Config {
	w.Helper()
	cfg, err := ReadConfig(filepath.Join(w.dir, ConfigFile(id)))
	if err != nil {
		w.Fatal(err)
	}
	return cfg
}

func (w *world) clientConfig(place int) *ClientConfig {
	w.Helper()
	cfg, err := ReadClientConfig(filepath.Join(w.dir, ClientFile(place)))
	if err != nil {
		w.Fatal(err)
	}
	return cfg
}

// open opens a replica with its log at its site.
func (w *world) open(cfg *Config, traitor string) (*ran, error) {
	w.Helper()
	site := worldSites[cfg.ID-1]
	l, err := w.net.Listen(site)
	if err != nil {
		w.Fatal(err)
	}
	r := &ran{done: make(chan error, 1), log: new(bytes.Buffer)}
	r.Replica, err = OpenReplica(cfg, ReplicaOptions{Listener: l, Dial: w.net.DialContext(site), Traitor: traitor,
		Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	return r, err
}

func (w *world) start(cfg *Config, traitor string) *ran {
	w.Helper()
	r, err := w.open(cfg, traitor)
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.done <- r.Run(ctx)
		close(r.done)
	}()
	w.Cleanup(func() {
		stop()
		<-r.done
	})
	return r
}

// end stops the replica and returns what Run did.
func (r *ran) end() error {
	r.stop()
	return <-r.done
}

func (w *world) client(place int, f func(context.Context, *Client)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o := ClientOptions{Dial: w.net.DialContext("z")}
	err := WithClient(ctx, w.clientConfig(place), o, func(ctx context.Context, c *Client) error {
		f(ctx, c)
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}

// add increments the counter and returns what it is then.
func (w *world) add(ctx context.Context, c *Client) uint64 {
	w.Helper()
	value, err := c.Execute(ctx, counter.Increment(counter.Reply{}))
	if err != nil {
		w.Fatal(c.Explain(err))
	}
	r, err := counter.Decode(value)
	if err != nil || r.Refused {
		w.Fatalf("the counter says %+v, %v", r, err)
	}
	return r.Value
}

// caughtUp waits until all members have committed the same.
func (w *world) caughtUp(ctx context.Context, c *Client) []Status {
	w.Helper()
	var catchup Catchup
	for {
		s, err := c.Status(ctx)
		if err != nil {
			w.Fatal(err)
		}
		if catchup.Over(s) {
			return s
		}
		if ctx.Err() != nil {
			w.Fatalf("the replicas did not catch up: %+v", s)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestService(t *testing.T) {
	inWorld(t, func(w *world) {
		replicas := map[protocol.ID]*ran{}
		for id := protocol.ID(1); id <= 4; id++ {
			replicas[id] = w.start(w.config(id), "")
		}
		w.client(0, func(ctx context.Context, c *Client) {
			var first time.Duration
			began := time.Now()
			r, err := c.Do(ctx, bft.Call{Command: counter.Increment(counter.Reply{})},
				func(bft.Result) { first = time.Since(began) })
			if took := time.Since(began); err != nil || r.Outcome != bft.Executed || first == 0 || first >= took {
				t.Errorf("got %v, %v; the first reply after %v, the confirmation after %v", r.Outcome, err, first, took)
			}
			if s := w.caughtUp(ctx, c); s[0].Role != Primary || s[1].Role != Backup || s[0].Disk == s[1].Disk ||
				s[2].Address != "c:1" || s[3].High == 0 {
				t.Errorf("the statuses are %+v", s)
			}
			page := httptest.NewRecorder()
			replicas[1].metricsHandler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
			for _, want := range []string{"foresay_bft_leader 1\n", "foresay_bft_peer_up{member=\"4\"} 1\n"} {
				if !strings.Contains(page.Body.String(), want) {
					t.Errorf("the metrics lack %q", want)
				}
			}

			// The primary stops, and the client goes on; it comes back with its disk.
			if err := replicas[1].end(); err != nil || !strings.Contains(replicas[1].log.String(), "replica: stopped") {
				t.Errorf("the replica ended with %v\n%s", err, replicas[1].log)
			}
			for want := range uint64(20) {
				if got := w.add(ctx, c); got != want+2 {
					t.Fatalf("the counter is %d, want %d", got, want+2)
				}
			}
			s, err := c.Status(ctx)
			if err != nil || s[0].Role != Unreachable || s[0].Error == "" || s[1].View == 0 || len(s[1].Unreached) != 1 {
				t.Errorf("the statuses are %+v, %v", s, err)
			}
			w.start(w.config(1), "")
			w.caughtUp(ctx, c)

			// Another one stops: without the first one, as it is now, there would be no quorum.
			if err := replicas[3].end(); err != nil {
				t.Error(err)
			}
			if got := w.add(ctx, c); got != 22 {
				t.Errorf("the counter is %d, want 22", got)
			}
			if value, err := c.Read(ctx, counter.Query()); err != nil {
				t.Error(err)
			} else if r, err := counter.Decode(value); err != nil || r.Value != 22 {
				t.Errorf("a read says %+v, %v", r, err)
			}
		})
		// A later process of the same client is not taken for the earlier one.
		w.client(0, func(ctx context.Context, c *Client) {
			if got := w.add(ctx, c); got != 23 {
				t.Errorf("after the client's restart the counter is %d, want 23", got)
			}
		})
	})
}

// TestTraitors: with one among the replicas, also as primary, two clients count right. Simulations
// play all strategies; so does this in a run that names its seed.
func TestTraitors(t *testing.T) {
	p, err := catalog.Byzantine("pbft")
	if err != nil {
		t.Fatal(err)
	}
	strategies := p.Strategies
	if !seed.Named() {
		strategies = []string{"equivocate", "mute", "lie-committed"}
	}
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.start(w.config(1), strategy)
				for id := protocol.ID(2); id <= 4; id++ {
					w.start(w.config(id), "")
				}
				w.client(0, func(ctx context.Context, one *Client) {
					w.client(1, func(ctx context.Context, two *Client) {
						for i := range uint64(6) {
							if got := w.add(ctx, []*Client{one, two}[i%2]); got != i+1 {
								t.Errorf("the counter is %d, want %d", got, i+1)
							}
						}
					})
				})
			})
		})
	}
	inWorld(t, func(w *world) {
		_, err := w.open(w.config(1), "polite")
		if err == nil || !strings.Contains(err.Error(), `pbft has no traitor "polite"; want one of equivocate,`) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLostDisk: a replica whose disk is gone says so instead of anything else.
func TestLostDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config(4)
		if err := w.start(cfg, "").end(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(cfg.Data); err != nil {
			t.Fatal(err)
		}
		_, err := w.open(cfg, "")
		if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "replica 4 must not take part: its disk") {
			t.Errorf("got %v", err)
		}
	})
}

// TestDamagedDisk: a replica whose state has changed on its disk says so, and mends it.
func TestDamagedDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		for id := protocol.ID(1); id <= 3; id++ {
			w.start(w.config(id), "")
		}
		cfg := w.config(4)
		r := w.start(cfg, "")
		w.client(0, func(ctx context.Context, c *Client) {
			for range 64 { // until there is a checkpoint
				w.add(ctx, c)
			}
			w.caughtUp(ctx, c)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			w.damage(cfg)
			r = w.start(cfg, "")
			if s := w.caughtUp(ctx, c); s[3].Repairs != 1 || s[0].Repairs != 0 {
				t.Errorf("the statuses are %+v", s)
			}
			if err := r.end(); err != nil || !strings.Contains(r.log.String(), "what is on its disk is not what it should be") {
				t.Errorf("the replica ended with %v\n%s", err, r.log)
			}
		})
	})
}

// damage changes a value of the state on a replica's disk.
func (w *world) damage(cfg *Config) {
	w.Helper()
	store, err := wal.Open(cfg.Data, wal.Options{})
	if err != nil {
		w.Fatal(err)
	}
	defer store.Close()
	names, err := store.Names()
	if err != nil || len(names) != 1 {
		w.Fatal(names, err)
	}
	disk, err := waldisk.New(store, names[0])
	if err != nil {
		w.Fatal(err)
	}
	for key, value := range disk.Keys().Scan([]byte("s/v"), []byte("s/w")) {
		value = slices.Clone(value)
		value[len(value)-1]++
		done := make(chan error, 1)
		put := host.Op{Kind: protocol.KindPut, Key: slices.Clone(key), Value: value}
		disk.Commit([]host.Op{put}, func(err error) { done <- err })
		if err := <-done; err != nil {
			w.Fatal(err)
		}
		return
	}
	w.Fatal("the state has no values")
}

// TestOthersDisk: a directory is one replica's of one group.
func TestOthersDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config(4)
		if err := w.start(cfg, "").end(); err != nil {
			t.Fatal(err)
		}
		other := w.config(3)
		other.Data = cfg.Data
		_, err := w.open(other, "")
		if err == nil || !strings.Contains(err.Error(), "is that of pbft/replica-4/members-") {
			t.Errorf("got %v", err)
		}
	})
}

// TestStrangers: who has another group's file, or none of its keys, is told so.
func TestStrangers(t *testing.T) {
	elsewhere := t.TempDir()
	_, err := Init(InitOptions{Dir: elsewhere, Protocol: "pbft", Service: "counter", Cluster: "test", RoundTrip: "20ms",
		Addresses: []string{"a:1", "b:1", "c:1", "d:1"}, Clients: 1})
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(w *world) {
		for id := protocol.ID(1); id <= 4; id++ {
			w.start(w.config(id), "")
		}
		w.dir = elsewhere
		w.client(0, func(ctx context.Context, c *Client) {
			began := time.Now()
			_, err := c.Execute(ctx, counter.Increment(counter.Reply{}))
			if !errors.As(err, new(*client.UnknownError)) ||
				!strings.Contains(err.Error(), "node 1 has the key") || time.Since(began) > 5*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			_, err = foresay.Do(ctx, func(ctx context.Context) ([]byte, error) {
				return c.Execute(ctx, counter.Increment(counter.Reply{}))
			})
			if !errors.As(err, new(*client.UnknownError)) || !strings.Contains(err.Error(), "node 1 has the key") ||
				time.Since(began) > 10*time.Second {
				t.Errorf("in a task, after %v: %v", time.Since(began), err)
			}
		})
	})
}

// bytesCoding is that of a service whose commands and results are bytes.
func bytesCoding() smrclient.Coding[[]byte, []byte, []byte] {
	same := func(b []byte) ([]byte, error) { return b, nil }
	return smrclient.Coding[[]byte, []byte, []byte]{Command: same, Query: same, Result: same}
}

// TestSpeculation: code in a task goes on at first replies, so that dependent increments take the
// time to the first reply of each, and the task ends when all are confirmed.
func TestSpeculation(t *testing.T) {
	inWorld(t, func(w *world) {
		for id := protocol.ID(1); id <= 4; id++ {
			w.start(w.config(id), "")
		}
		w.client(0, func(ctx context.Context, c *Client) {
			w.add(ctx, c)
			const n = 20
			took := map[bool]time.Duration{}
			for _, speculate := range []bool{false, true} {
				f := func(ctx context.Context) (last counter.Reply, err error) {
					for range n {
						value, err := c.Execute(ctx, counter.Increment(last))
						if err != nil {
							return last, err
						}
						if last, err = counter.Decode(value); err != nil {
							return last, err
						}
					}
					return last, nil
				}
				began := time.Now()
				var last counter.Reply
				var err error
				if speculate {
					last, err = foresay.Do(ctx, f)
				} else {
					last, err = f(ctx)
				}
				took[speculate] = time.Since(began)
				if want := uint64(1 + n); err != nil || !speculate && last.Value != want || speculate && last.Value != want+n {
					t.Errorf("the counter is at %+v, %v", last, err)
				}
			}
			if took[true] > took[false]*6/10 {
				t.Errorf("%d dependent increments take %v, in a task %v", n, took[false], took[true])
			}
		})
	})
}

// TestNoQuorum: an error tells who is missing, and that an outcome is unknown.
func TestNoQuorum(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(w.config(1), "")
		w.start(w.config(2), "")
		w.client(0, func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			_, err := c.Execute(ctx, counter.Increment(counter.Reply{}))
			err = c.Explain(err)
			if want := "2 of 4 members are reached, which is no quorum"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want one with %q", err, want)
			}
			large := bft.Call{Command: make([]byte, MaxCommandBytes+1)}
			_, executed := c.Execute(ctx, large.Command)
			_, started := c.Start(ctx, large, client.Hearer{})
			_, inTask := foresay.Do(ctx, func(ctx context.Context) ([]byte, error) { return c.Execute(ctx, large.Command) })
			_, typed := client.Typed[[]byte, []byte, []byte]{Client: c.Client, Coding: bytesCoding()}.Execute(ctx, large.Command)
			for _, err := range []error{executed, started, inTask, typed} {
				if !errors.As(err, new(*client.RejectedError)) {
					t.Errorf("a command that is too large: %v", err)
				}
			}
		})
	})
}

func ExampleInit() {
	dir, err := os.MkdirTemp("", "foresay-bft-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	group, err := Init(InitOptions{Dir: dir, Protocol: "pbft", Service: "counter", Cluster: "shop", Replicas: 4,
		Clients: 1, Host: "127.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(group.Members), "replicas, which survive one that is faulty")
	// Output: 4 replicas, which survive one that is faulty
}

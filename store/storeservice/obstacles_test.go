package storeservice

import (
	"context"
	"errors"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
)

// TestWhatKeepsAStoreFromStarting: within five seconds a machine says in its log, at /ready and in
// its status why the store does not start, and so do the errors of clients that cannot reach it.
func TestWhatKeepsAStoreFromStarting(t *testing.T) {
	stray := func(change func(*storeconfig.Store)) func(*world) {
		return func(w *world) {
			w.alter = func(cfg *storeconfig.MachineConfig) {
				if cfg.Machine == "b" {
					change(cfg.Store)
				}
			}
			w.start("b")
		}
	}
	for _, tc := range []struct {
		name string
		with func(*world)
		want string
	}{
		{"nobody else is there", func(*world) {}, "dial b:1 from a: no listener"},
		{"the others are cut off", func(w *world) { w.net.SetDown("a", "b", true); w.start("b") }, "b"},
		{"another authority's certificate", func(w *world) {
			other := t.TempDir()
			if _, err := storeconfig.Init(storeconfig.InitOptions{
				Dir: other, Cluster: "test", Shards: 2, Sites: []storeconfig.Site{
					{Name: "a", Machines: []storeconfig.Machine{{Name: "a", Peers: "a:1", Client: "a:2"}}},
					{Name: "b", Machines: []storeconfig.Machine{{Name: "b", Peers: "b:1", Client: "b:2"}}},
				},
			}); err != nil {
				w.Fatal(err)
			}
			w.alter = func(cfg *storeconfig.MachineConfig) {
				if cfg.Machine == "b" {
					cfg.TLS = &storeconfig.TLSFiles{CA: other + "/ca.pem", Cert: other + "/machine-b.pem", Key: other +
						"/machine-b-key.pem"}
				}
			}
			w.start("b")
		}, "certificate"},
		{"another store", stray(func(s *storeconfig.Store) { s.Cluster = "elsewhere" }), "elsewhere"},
		{"another epoch", stray(func(s *storeconfig.Store) { s.Epoch = 7 }), "epoch 7"},
		{"another protocol", stray(func(s *storeconfig.Store) { reread(t, s, func() { s.Protocol = "layered" }) }),
			"machine b runs layered, not replicatedcommit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				start := time.Now()
				tc.with(w)
				w.start("a")
				w.client(func(ctx context.Context, conn *Client, c *client.Client) {
					time.Sleep(4 * time.Second)
					synctest.Wait()
					if log := w.running["a"].log.String(); !strings.Contains(log, "store: machine does not take part yet") ||
						!strings.Contains(log, tc.want) {
						t.Errorf("the log does not tell of %q:\n%s", tc.want, log)
					}
					grpcsWords(t, "/ready", w.page("a", "/ready", http.StatusServiceUnavailable, "new\n", tc.want))
					look, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
					if s := Complaints(conn.Status(look)); !strings.Contains(s, "machine a is new") || !strings.Contains(s, tc.want) {
						t.Errorf("the status does not tell of %q: %s", tc.want, s)
					} else {
						grpcsWords(t, "the status", s)
					}
					err := put(look, c, "k", "v")
					if err == nil {
						t.Error("a store that has not started takes a write")
						return
					}
					grpcsWords(t, "a client's error", err.Error())
				})
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("it is told after %v", took)
				}
			})
		})
	}
}

// reread has a file of a store changed, and read again.
func reread(t *testing.T, s *storeconfig.Store, change func()) {
	t.Helper()
	change()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	changed, err := storeconfig.ParseStore(b)
	if err != nil {
		t.Fatal(err)
	}
	*s = *changed
}

// TestMachinesOfOneStoreDiffer: machines that differ in the protocol's mode, or in how far clocks
// may be apart, refuse each other and say in what, also where they have run together before, as
// far as a data directory does not tell that it is of another mode; the others go on.
func TestMachinesOfOneStoreDiffer(t *testing.T) {
	for want, change := range map[string]func(*storeconfig.Store){
		"machine c runs carousel in mode basic, not carousel in mode fast": func(s *storeconfig.Store) {
			s.Mode = "basic"
		},
		"machine c has max_offset 50ms, not 10ms": func(s *storeconfig.Store) { s.MaxOffset = "50ms" },
	} {
		o := storeconfig.InitOptions{Protocol: "carousel", Mode: "fast"}
		inStore(t, []string{"a", "b", "c"}, o, func(w *world) {
			w.start("a", "b", "c")
			w.client(func(ctx context.Context, conn *Client, c *client.Client) {
				w.ready(ctx, conn)
				w.stop("c")
				w.alter = func(cfg *storeconfig.MachineConfig) {
					earlier := tenant{Cluster: cfg.Store.Cluster, Machine: "c", Epoch: cfg.Store.Epoch}
					if err := earlier.write(filepath.Join(cfg.Data, "machine.json")); err != nil {
						t.Fatal(err)
					}
					reread(t, cfg.Store, func() { change(cfg.Store) })
				}
				w.start("c")
				time.Sleep(4 * time.Second)
				for _, key := range []string{"k", "l", "m", "n"} {
					if err := put(ctx, c, key, "v"); err != nil {
						t.Errorf("the two that agree do not take a write: %v", err)
					}
				}
				if s := Complaints(conn.Status(ctx)); !strings.Contains(s, "machine a is refused by c: "+want) {
					t.Errorf("the status does not tell of %q: %s", want, s)
				}
			})
		})
	}
}

// grpcsWords looks for what gRPC puts around the reason of an error, and nobody who reads it needs.
func grpcsWords(t *testing.T, where, text string) {
	t.Helper()
	for _, word := range []string{"rpc error", "desc =", "transport:", "Error while dialing"} {
		if strings.Contains(text, word) {
			t.Errorf("%s has gRPC's words %q:\n%s", where, word, text)
		}
	}
}

// TestBlockedTransactionsAreTold: a transaction that waits for a site which is away is told with
// its age and the command that ends that, by the machines that are there and in the status.
func TestBlockedTransactionsAreTold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start("a", "b", "c")
		w.client(func(ctx context.Context, conn *Client, c *client.Client) {
			w.ready(ctx, conn)
			began := w.block(ctx, "c")
			s := conn.Status(ctx)
			var blocked []BlockedTxn
			for _, m := range s[:2] {
				for _, sh := range m.Shards {
					blocked = append(blocked, sh.BlockedTransactions...)
				}
			}
			if len(blocked) == 0 || math.Abs(blocked[0].AgeSeconds-time.Since(began).Seconds()) > 1 {
				t.Errorf("after %v the blocked transactions are %+v, of %+v", time.Since(began), blocked, s)
				return
			}
			r := Remedies(s, "dir")
			if len(r) != 1 || r[0].Site != "c" || r[0].Command != "foresay store resolve --dir dir --site c" ||
				!strings.Contains(r[0].Trouble, blocked[0].ID) {
				t.Errorf("the remedies are %+v", r)
			}
			for i := range s[0].Peers { // a machine that reaches nobody is rather cut off itself
				s[0].Peers[i].Reachable = false
			}
			if r := Remedies(s[:1], "dir"); len(r) > 0 {
				t.Errorf("a machine that reaches nobody advises %+v", r)
			}
			w.page("a", "/ready", http.StatusOK, "admitted\n", "it does not reach c: ", "is blocked, ",
				"foresay store resolve --dir "+w.dir+" --site c\n")
		})
	})
}

// TestNewSiteThatHasNotStarted: what is blocked while a new site has not started waits for that:
// the command that ends it starts the machine, and replaces nothing.
func TestNewSiteThatHasNotStarted(t *testing.T) {
	a := Status{Site: "a", Machine: "a", State: Admitted, Shards: []ShardStatus{{Blocked: 1}},
		Peers: []PeerStatus{{Machine: "b", Site: "b", Reachable: true}, {Machine: "d", Site: "d"}}}
	b := Status{Site: "b", Machine: "b", State: Admitted, Peers: []PeerStatus{{Machine: "a", Site: "a", Reachable: true},
		{Machine: "d", Site: "d"}}}
	d := Status{Site: "d", Machine: "d-2", State: Unreachable, New: true}
	r := Remedies([]Status{a, b, d}, "dir")
	if len(r) != 1 || r[0].Command != "foresay store serve --config dir/machine-d-2.json" ||
		!strings.Contains(r[0].Trouble, "has not started yet") || r[0].When() != "there run" {
		t.Errorf("the remedies are %+v", r)
	}
	d.New = false
	if r := Remedies([]Status{a, b, d}, "dir"); len(r) != 1 || r[0].Command != "foresay store resolve --dir dir --site d" {
		t.Errorf("of a site that was there before the remedies are %+v", r)
	}
}

// block has a client at each of a and b write a key at the moment a third site is cut off, before
// they can know: each site votes for the one that is near. Then it is stopped. It returns when they
// began.
func (w *world) block(ctx context.Context, third string) (began time.Time) {
	w.Helper()
	cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
	if err != nil {
		w.Fatal(err)
	}
	var ready, all sync.WaitGroup
	cut := make(chan struct{})
	for _, site := range []wan.Site{"a", "b"} {
		ready.Add(1)
		all.Go(func() {
			arrived := sync.OnceFunc(ready.Done)
			defer arrived()
			conn, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext(site)})
			if err != nil {
				w.Error(err)
				return
			}
			defer conn.Close()
			txns, err := conn.Transactions(client.Spec, 0)
			if err != nil {
				w.Error(err)
				return
			}
			if err := put(ctx, txns, "key of "+string(site), "v"); err != nil {
				w.Errorf("the first write from %s: %v", site, err)
			}
			time.Sleep(time.Second) // the third site has answered
			arrived()
			<-cut
			if err := put(ctx, txns, "k", string(site)); !errors.As(err, new(*client.BlockedError)) {
				w.Errorf("the write from %s ended with %v", site, err)
			}
		})
	}
	ready.Wait()
	cutOff := func(down bool) {
		for _, site := range []wan.Site{"a", "b"} {
			w.net.SetDown(site, wan.Site(third), down)
			w.net.SetDown(wan.Site(third), site, down)
		}
	}
	cutOff(true)
	began = time.Now()
	close(cut)
	all.Wait()
	w.stop(third)
	cutOff(false) // connections to it are refused
	time.Sleep(3 * time.Second)
	return began
}

package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/metrics/metricstest"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/memdir"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// world is replicas in a bubble, with real disks and certificates, over a network in memory.
// Replica 1 is at a, and so on; clients are at z.
type world struct {
	*testing.T
	dir   string
	net   *shape.Network
	cfg   *ClientConfig
	clock func() time.Duration // of replicas that go by the time of day; nil is the bubble's
}

var worldSites = []wan.Site{"a", "b", "c", "d", "e", "z"}

// protocolNames are the protocols between which clients and watches see a difference: all, but of
// the two with one leader only Raft, and of the two that are Domino only one, since their replicas'
// beats are most of the work. A run that names its seed has them as well.
func protocolNames() []string {
	return slices.DeleteFunc(catalog.Names(), func(name string) bool {
		return (name == "domino" || name == "multipaxos") && !seed.Named()
	})
}

func inWorld(t *testing.T, protocolName string, test func(*world)) {
	t.Helper()
	inGroups(t, protocolName, Routing{}, test)
}

// inGroups is inWorld with several groups.
func inGroups(t *testing.T, protocolName string, routing Routing, test func(*world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, dir: dir, net: shape.NewNetwork(wan.Uniform(10*time.Millisecond, worldSites...), 1)}
		var err error
		w.cfg, err = Init(InitOptions{
			Dir: dir, Protocol: protocolName, Cluster: "test", RoundTrip: "20ms", Addresses: []string{"a:1", "b:1", "c:1"},
			Leader: 1, Routing: routing,
		})
		if err != nil {
			t.Fatal(err)
		}
		test(w)
	})
}

// ran is a replica that runs.
type ran struct {
	*Replica
	stop context.CancelFunc
	done chan error
	log  *bytes.Buffer // read it after the end
}

func (w *world) replicaConfig(id protocol.ID) *Config {
	w.Helper()
	cfg, err := ReadConfig(filepath.Join(w.dir, ConfigFile(id)))
	if err != nil {
		w.Fatal(err)
	}
	return cfg
}

func (w *world) start(id protocol.ID) *ran {
	w.Helper()
	cfg := w.replicaConfig(id)
	site := worldSites[id-1]
	l, err := w.net.Listen(site)
	if err != nil {
		w.Fatal(err)
	}
	r := &ran{done: make(chan error, 1), log: new(bytes.Buffer)}
	r.Replica, err = OpenReplica(cfg, ReplicaOptions{Listener: l, Dial: w.net.DialContext(site),
		Logger: slog.New(slog.NewTextHandler(r.log, nil)), clock: w.clock})
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

func (w *world) client(f func(context.Context, *Client)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := WithClient(ctx, w.cfg, ClientOptions{Dial: w.net.DialContext("z")}, func(ctx context.Context, c *Client) error {
		f(ctx, c)
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}

// equal waits until all members have executed the same.
func (w *world) equal(ctx context.Context, c *Client) []Status {
	w.Helper()
	for {
		s, err := c.Status(ctx)
		if err != nil {
			w.Fatal(err)
		}
		if Equal(s) {
			return s
		}
		if ctx.Err() != nil {
			w.Fatalf("the replicas did not come to be equal: %+v", s)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestService(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) { inWorld(t, name, testService) })
	}
}

func testService(w *world) {
	replicas := []*ran{w.start(1), w.start(2), w.start(3)}
	w.client(func(ctx context.Context, c *Client) {
		version, err := c.Put(ctx, "k", []byte("v"))
		if err != nil || version != 1 {
			w.Fatalf("put: %d, %v", version, err)
		}
		s := w.equal(ctx, c)
		if len(s) != 3 || s[0].Disk == s[1].Disk || s[2].Address != "c:1" {
			w.Fatalf("the statuses are %+v", s)
		}
		w.figures(replicas)
		id := w.leads(replicas, s)
		one := replicas[id-1]
		w.metrics(one, "/metrics", http.StatusOK, "foresay_smr_ready 1\n", "foresay_smr_members 3\n",
			fmt.Sprintf("foresay_smr_peer_up{member=\"%d\"} 1\n", id%3+1))

		// The leader, if there is one, stops; it comes back with its disk, which is still its.
		if err := one.end(); err != nil || !strings.Contains(one.log.String(), "replica: stopped") {
			w.Errorf("the replica ended with %v\n%s", err, one.log)
		}
		if item, found, err := c.Get(ctx, "k"); err != nil || !found || string(item.Value) != "v" {
			w.Errorf("get: %+v, %v, %v", item, found, err)
		}
		w.start(id)
		w.equal(ctx, c)
		w.join(ctx, c)
	})
}

// leads looks at what replicas say about the leader, and returns it, or any replica if the protocol
// has none.
func (w *world) leads(replicas []*ran, statuses []Status) protocol.ID {
	w.Helper()
	id := statuses[0].Leader
	if w.proto().Leaderless {
		for i, s := range statuses {
			if !s.Leaderless || !s.Ready || s.Leader != 0 {
				w.Errorf("the protocol has no leader, and a status is %+v", s)
			}
			w.metrics(replicas[i], "/debug/pprof/goroutine?debug=1", http.StatusOK, "goroutine profile: total ")
			w.metrics(replicas[i], "/ready", http.StatusOK, ", there is no leader\n")
		}
		if page := w.page(replicas[0], "/metrics", http.StatusOK); strings.Contains(page, "foresay_smr_leader") ||
			strings.Contains(page, "has_leader") {
			w.Errorf("the protocol has no leader, and the metrics tell of one:\n%s", page)
		}
		return 1
	}
	if id == 0 || statuses[id-1].Role != "leader" || statuses[id-1].Leaderless {
		w.Fatalf("replica %d leads, and the statuses are %+v", id, statuses)
	}
	w.metrics(replicas[id-1], "/metrics", http.StatusOK, "foresay_smr_leader 1\n", "foresay_smr_has_leader 1\n")
	w.metrics(replicas[id-1], "/ready", http.StatusOK, fmt.Sprintf("leader, replica %d leads\n", id))
	return id
}

func (w *world) proto() smr.Protocol { return w.cfg.proto }

// join has a replica added, and its predecessor removed.
func (w *world) join(ctx context.Context, c *Client) {
	w.Helper()
	if _, err := InitJoin(w.dir, 4, "d:1"); err != nil {
		w.Fatal(err)
	}
	four := w.start(4)
	add := smrMembers([]Member{{4, "d:1"}})[0]
	why := "no leader is known\n"
	if w.proto().Leaderless {
		why = "blank, it does not serve yet\n"
	}
	if w.proto().Leaderless && w.proto().Learns {
		why = "learner, it does not serve yet\n"
	}
	w.metrics(four, "/ready", http.StatusServiceUnavailable, why)
	for _, change := range []change{{Add: add}, {Remove: 2}, {Remove: 2}} { // the second time it is so already
		if err := c.Change(ctx, change); err != nil {
			w.Errorf("%v: %v", change, err)
		}
	}
	s := w.equal(ctx, c)
	if last := s[len(s)-1]; last.Replica != 4 || last.Address != "d:1" || len(last.Members) != 3 {
		w.Errorf("the statuses are %+v", s)
	}
}

// figures looks at the pages of all replicas, by one of which a command was executed for a client.
// In Domino clients may have it decided themselves.
func (w *world) figures(replicas []*ran) {
	w.Helper()
	executed := 0
	var pages []string
	for _, r := range replicas {
		page := w.page(r, "/metrics", http.StatusOK)
		pages = append(pages, page)
		metricstest.Check(w, page, "foresay_smr_")
		for _, want := range []string{"foresay_smr_disk_commit_duration_seconds_bucket{le=\"0.02\"} ",
			"process_resident_memory_bytes ", "go_goroutines "} {
			if !strings.Contains(page, "\n"+want) {
				w.Errorf("replica %d: /metrics does not have %q:\n%s", r.cfg.ID, want, page)
			}
		}
		if strings.Contains(page, "\nforesay_smr_command_duration_seconds_count{outcome=\"committed\"} 1\n") {
			executed++
		}
	}
	absent := []string{"foresay_smr_leader", "foresay_smr_has_leader", "foresay_smr_command_duration_seconds"}
	if w.cfg.Protocol == "raft" {
		absent = nil
	}
	for _, clocks := range []string{"foresay_smr_claims_ahead_seconds", "foresay_smr_clock_held_seconds"} {
		if !strings.HasPrefix(w.cfg.Protocol, "domino") {
			absent = append(absent, clocks)
		} else if !strings.Contains(pages[0], "\n"+clocks+" 0") {
			w.Errorf("/metrics does not have %s:\n%s", clocks, pages[0])
		}
	}
	metricstest.Documented(w, pages, "foresay_smr_", "../../docs/smr.md", absent...)
	if executed != 1 && !(executed == 0 && strings.HasPrefix(w.cfg.Protocol, "domino")) {
		w.Errorf("%d replicas tell how long one command took", executed)
	}
}

// metrics looks at what a replica's page says.
func (w *world) metrics(r *ran, path string, code int, want ...string) {
	w.Helper()
	got := w.page(r, path, code)
	for _, line := range want {
		if !strings.Contains(got, line) {
			w.Errorf("%s does not have %q:\n%s", path, line, got)
		}
	}
}

func (w *world) page(r *ran, path string, code int) string {
	w.Helper()
	got := httptest.NewRecorder()
	r.metricsHandler().ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
	if got.Code != code {
		w.Errorf("%s has the code %d, want %d", path, got.Code, code)
	}
	return got.Body.String()
}

func TestLostDiskIsRefused(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, name, func(w *world) {
				w.start(1)
				w.start(2)
				three := w.start(3)
				w.client(func(ctx context.Context, c *Client) {
					if _, err := c.Put(ctx, "k", nil); err != nil {
						w.Fatal(err)
					}
					w.equal(ctx, c)
					if err := three.end(); err != nil {
						w.Fatal(err)
					}
					if err := os.RemoveAll(filepath.Join(w.dir, "replica-3")); err != nil {
						w.Fatal(err)
					}
					for range 2 { // and it stays so
						err := <-w.start(3).done
						if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.ID != 3 {
							w.Errorf("the replica without its disk ended with %v, want to be refused", err)
						}
					}
				})
			})
		})
	}
}

// TestConfigurationsOfPrograms: a program that fills in a configuration itself can use it without
// asking first whether it is right.
func TestConfigurationsOfPrograms(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		for id := range protocol.ID(3) {
			w.start(id + 1)
		}
		cfg := &ClientConfig{Cluster: w.cfg.Cluster, Protocol: w.cfg.Protocol, Members: w.cfg.Members, TLS: w.cfg.TLS}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := WithClient(ctx, cfg, ClientOptions{Dial: w.net.DialContext("z")}, func(ctx context.Context, c *Client) error {
			_, err := c.Put(ctx, "k", nil)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestStrangers: a client without the cluster's certificate, and one of another cluster or
// protocol, are told why they get nowhere.
func TestStrangers(t *testing.T) {
	other := t.TempDir()
	stranger, err := Init(InitOptions{Dir: other, Protocol: "raft", Cluster: "test", RoundTrip: "20ms",
		Addresses: []string{"a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		namesake := *w.cfg
		namesake.Cluster = "other"
		foreigner := *w.cfg
		foreigner.Protocol = "mencius"
		if err := foreigner.Check(); err != nil {
			t.Fatal(err)
		}
		replica := w.replicaConfig(2)
		for _, cfg := range []*ClientConfig{nil, {}, {Cluster: "test", Protocol: "raft", TLS: w.cfg.TLS}} {
			if _, err := Dial(cfg, ClientOptions{}); err == nil {
				t.Errorf("a client is made of %v", cfg)
			}
		}
		for _, cfg := range []*Config{nil, {}, {Cluster: "test", Protocol: "raft", TLS: replica.TLS}} {
			if _, err := OpenReplica(cfg, ReplicaOptions{}); err == nil {
				t.Errorf("a replica is made of %v", cfg)
			}
		}
		disguised := *w.cfg
		disguised.TLS = replica.TLS
		if _, err := Dial(&disguised, ClientOptions{}); err == nil ||
			!strings.Contains(err.Error(), "no client's certificate") {
			t.Errorf("a replica's certificate is taken for a client: %v", err)
		}
		for name, files := range map[string]*TLSFiles{"client": w.cfg.TLS, "replica 1": w.replicaConfig(1).TLS} {
			mixedUp := *replica
			mixedUp.TLS = files
			if _, err := OpenReplica(&mixedUp, ReplicaOptions{}); err == nil ||
				!strings.Contains(err.Error(), `not replica 2's certificate: `) {
				t.Errorf("the certificate of %s is taken for replica 2: %v", name, err)
			}
		}
		plain := *w.cfg
		plain.TLS, plain.Insecure = nil, true
		for want, cfg := range map[string]*ClientConfig{
			"it takes connections with TLS only": &plain,
			"certificate":                        stranger,
			`a host of the cluster "test (raft)", not of "other (raft)"`:   &namesake,
			`a host of the cluster "test (raft)", not of "test (mencius)"`: &foreigner,
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			err := WithClient(ctx, cfg, ClientOptions{Dial: w.net.DialContext("z")}, func(ctx context.Context, c *Client) error {
				began := time.Now()
				_, err := c.Put(ctx, "k", nil)
				if rejected, ok := errors.AsType[*client.RejectedError](err); !ok || !rejected.Unsent ||
					time.Since(began) > 500*time.Millisecond {
					t.Errorf("a stranger's write ended after %v with %v, want to be rejected at once", time.Since(began), err)
				}
				if got := c.Unreachable(); !strings.Contains(got, want) {
					t.Errorf("%q does not tell of %s", got, want)
				}
				strangerLooks(t, ctx, c, want)
				return nil
			})
			cancel()
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// strangerLooks has a client that all refuse do what begins with a look at the members.
func strangerLooks(t *testing.T, ctx context.Context, c *Client, want string) {
	t.Helper()
	_, _, leads := c.HandOver(ctx, 2)
	_, spreads := c.SpreadLeaders(ctx)
	_, learns := c.AwaitLearner(ctx, 4, nil)
	_, promotes := c.Promote(ctx, 4)
	for what, err := range map[string]error{
		"lead": leads, "spread": spreads, "await": learns, "promote": promotes,
	} {
		switch {
		case errors.Is(err, ErrNoHandOver) || errors.Is(err, ErrNoLearners):
		case err == nil || !strings.Contains(err.Error(), want) || ctx.Err() != nil:
			t.Errorf("%s: a stranger got %v, want at once to be told of %s", what, err, want)
		}
	}
}

// TestWithoutAQuorum: a call that nobody takes names each member that was asked, and how it stands.
func TestWithoutAQuorum(t *testing.T) {
	for _, protocol := range []string{"raft", "mencius"} {
		inWorld(t, protocol, func(w *world) {
			w.start(1)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			err := WithClient(context.Background(), w.cfg, ClientOptions{Dial: w.net.DialContext("z")},
				func(_ context.Context, c *Client) error {
					_, err := c.Put(ctx, "k", []byte("v"))
					if err == nil {
						t.Error("one replica of three took a command")
					}
					other := errors.New("of the code's own")
					if got := c.Explain(other); got != other {
						t.Errorf("another error became %v", got)
					}
					err = c.Explain(err)
					for _, want := range []string{"1 of 3 members are reached, which is no quorum: ", "member 1 at ",
						": connected, did not answer the call; member", " 2 at ", " 3 at "} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("%v does not tell %q", err, want)
						}
					}
					return nil
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWithoutAQuorumOfTheMembersOfNow: those that the client's file names and that were replaced do
// not count, nor does one that waits to be added.
func TestWithoutAQuorumOfTheMembersOfNow(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		one, two := w.start(1), w.start(2)
		w.start(3)
		var four *ran
		w.client(func(ctx context.Context, c *Client) {
			four = w.replace(ctx, c, one, 4)
			if err := c.Change(ctx, smr.Change{Remove: 2}); err != nil {
				w.Fatal(err)
			}
		})
		two.stop()
		<-two.done
		if _, err := InitJoin(w.dir, 5, "e:1"); err != nil {
			w.Fatal(err)
		}
		w.start(5)
		w.client(func(ctx context.Context, c *Client) {
			for { // until the members know of replica 5
				if _, found, err := c.Learner(ctx, 5); found || err != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			four.stop()
			<-four.done
			brief, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := c.Put(brief, "k", []byte("v"))
			if err == nil {
				w.Fatal("one replica of two took a command")
			}
			err = c.Explain(err)
			for _, want := range []string{"1 of 2 members are reached, which is no quorum: ", "member 3 at ", "member 4 at "} {
				if !strings.Contains(err.Error(), want) {
					w.Errorf("%v does not tell %q", err, want)
				}
			}
			for _, id := range []string{"member 1 ", "member 2 ", "member 5 "} {
				if strings.Contains(err.Error(), id) {
					w.Errorf("%v tells of %s, which is no member", err, id)
				}
			}
		})
	})
}

// TestReplicasOfOtherProtocols: one whose file names another protocol is not heard, and both logs
// say why.
func TestReplicasOfOtherProtocols(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		one := w.start(1)
		w.start(2)
		w.adjust(3, func(c *Config) { c.Protocol = "multipaxos" })
		three := w.start(3)
		w.client(func(ctx context.Context, c *Client) {
			s, err := c.Status(ctx)
			if err != nil || len(s) != 3 || s[1].Role == Unreachable || s[2].Role != Unreachable {
				t.Errorf("the statuses are %+v, %v", s, err)
			}
		})
		time.Sleep(5 * time.Second) // all have tried to connect to all
		for r, want := range map[*ran]string{
			one:   `cluster \"test (multipaxos)\", not of \"test (raft)\"`,
			three: `cluster \"test (raft)\", not of \"test (multipaxos)\"`,
		} {
			if err := r.end(); err != nil {
				t.Error(err)
			}
			if got := r.log.String(); !strings.Contains(strings.ReplaceAll(got, `\\`, `\`), want) {
				t.Errorf("the log does not have %s:\n%s", want, got)
			}
		}
	})
}

// adjust changes a replica's file.
func (w *world) adjust(id protocol.ID, change func(*Config)) {
	w.Helper()
	name := filepath.Join(w.dir, ConfigFile(id))
	c, err := ReadConfig(name)
	if err != nil {
		w.Fatal(err)
	}
	change(c)
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	memdir.Use()
	os.Exit(heap.RunTests(m))
}

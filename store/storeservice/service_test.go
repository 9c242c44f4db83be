package storeservice

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/internal/cli/metrics/metricstest"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// world is a store in a bubble, with real disks and certificates, over a network in memory. Sites
// a, b and c have a machine each; z has clients.
type world struct {
	*testing.T
	dir     string
	net     *shape.Network
	running map[string]*ran
	alter   func(*storeconfig.MachineConfig) // nil: nothing is
}

const roundTrip = 20 * time.Millisecond

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	inWorldOf(t, []string{"a", "b", "c"}, test)
}

// inWorldOf is inWorld with the machines that the sites have: "b b2", say, is site b with two.
func inWorldOf(t *testing.T, machines []string, test func(*world)) {
	t.Helper()
	inStore(t, machines, storeconfig.InitOptions{}, test)
}

// inStore is inWorldOf with a store that is as the options say.
func inStore(t *testing.T, machines []string, o storeconfig.InitOptions, test func(*world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		places := []wan.Site{"z"}
		for _, vacant := range []string{"d", "e", "f"} { // where a new site may be
			if !strings.Contains(strings.Join(machines, " "), vacant) {
				places = append(places, wan.Site(vacant))
			}
		}
		var sites []storeconfig.Site
		for _, names := range machines {
			site := storeconfig.Site{Name: strings.Fields(names)[0]}
			for _, name := range strings.Fields(names) {
				places = append(places, wan.Site(name))
				site.Machines = append(site.Machines, storeconfig.Machine{Name: name, Peers: name + ":1", Client: name + ":2"})
			}
			sites = append(sites, site)
		}
		w := &world{T: t, dir: dir, net: shape.NewNetwork(wan.Uniform(roundTrip, places...), 1), running: map[string]*ran{}}
		o.Dir, o.Cluster, o.Shards, o.Sites, o.RoundTrip = dir, "test", 2, sites, roundTrip.String()
		if _, err := storeconfig.Init(o); err != nil {
			t.Fatal(err)
		}
		test(w)
		for name := range w.running {
			w.stop(name)
		}
	})
}

// ran is a machine that runs.
type ran struct {
	*Machine
	cancel context.CancelFunc
	done   chan error
	log    *bytes.Buffer // read it after the end
}

func (w *world) open(name string) (*ran, error) {
	w.Helper()
	cfg, err := storeconfig.ReadMachine(filepath.Join(w.dir, storeconfig.MachineFile(name)))
	if err != nil {
		w.Fatal(err)
	}
	if w.alter != nil {
		w.alter(cfg)
	}
	peers, err := w.net.Listen(wan.Site(name))
	if err != nil {
		w.Fatal(err)
	}
	clients, err := w.net.Listen(wan.Site(name))
	if err != nil {
		w.Fatal(err)
	}
	r := &ran{done: make(chan error, 1), log: new(bytes.Buffer)}
	r.Machine, err = OpenMachine(cfg, MachineOptions{Peers: peers, Client: clients,
		Dial: w.net.DialContext(wan.Site(name)), Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	return r, err
}

func (w *world) start(names ...string) {
	w.Helper()
	for _, name := range names {
		r, err := w.open(name)
		if err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		w.running[name] = r
		go func() { r.done <- r.Run(ctx) }()
		synctest.Wait() // it serves
	}
}

func (w *world) stop(names ...string) {
	w.Helper()
	for _, name := range names {
		r := w.running[name]
		delete(w.running, name)
		r.cancel()
		if err := <-r.done; err != nil || !strings.Contains(r.log.String(), "machine stopped") {
			w.Errorf("machine %s ended with %v\n%s", name, err, r.log)
		}
	}
}

// dial returns a client at z, with the store's file as it is.
func (w *world) dial() *Client {
	w.Helper()
	cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
	if err != nil {
		w.Fatal(err)
	}
	conn, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext("z")})
	if err != nil {
		w.Fatal(err)
	}
	return conn
}

func (w *world) client(f func(context.Context, *Client, *client.Client)) {
	w.Helper()
	conn := w.dial()
	defer conn.Close()
	txns, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f(ctx, conn, txns)
}

func put(ctx context.Context, c *client.Client, key, value string) error {
	return c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put(key, []byte(value)) })
}

func get(ctx context.Context, c *client.Client, key string) (string, error) {
	return client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
		v, _, err := tx.Get(ctx, key)
		return string(v), err
	})
}

// ready waits until all machines take part.
func (w *world) ready(ctx context.Context, c *Client) []Status {
	w.Helper()
	for {
		s := c.Status(ctx)
		if Ready(s) {
			return s
		}
		if ctx.Err() != nil {
			w.Fatalf("the machines do not come to take part: %s", Complaints(s))
		}
		time.Sleep(roundTrip)
	}
}

func TestStore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start("a", "b", "c")
		w.client(func(ctx context.Context, conn *Client, c *client.Client) {
			s := w.ready(ctx, conn)
			if len(s) != 3 || s[1].Machine != "b" || s[1].Address != "b:2" || len(s[1].Shards) != 2 ||
				s[1].Shards[1].Shard != 1 || s[1].Epoch != 1 {
				t.Errorf("the statuses are %+v", s)
			}
			if err := put(ctx, c, "k", "v"); err != nil {
				t.Fatal(err)
			}
			// A machine stops: the others go on. It comes back with its disk, and so do all.
			w.stop("a")
			if err := put(ctx, c, "k", "w"); err != nil {
				t.Error(err)
			}
			if s := conn.Status(ctx); Ready(s) || s[0].State != Unreachable ||
				!strings.Contains(Complaints(s), "machine a is unreachable: ") {
				t.Errorf("without a the statuses are %+v", s)
			}
			w.stop("b", "c")
			w.start("a", "b", "c")
			w.ready(ctx, conn)
			if v, err := get(ctx, c, "k"); err != nil || v != "w" {
				t.Errorf("k is %q, %v", v, err)
			}
			d := conn.Distances(ctx)
			if trip, ok := Majority(d, 3); len(d) != 3 || !ok || trip != roundTrip {
				t.Errorf("the distances are %v, a majority is %v away", d, trip)
			}
			if _, ok := Majority(d[:1], 3); ok {
				t.Error("there is a majority with one site of three")
			}
		})
		w.page("a", "/debug/pprof/goroutine?debug=1", http.StatusOK, "goroutine profile: total ")
		w.page("a", "/ready", http.StatusOK, "admitted\n")
		w.figures()
		w.page("a", "/metrics", http.StatusOK, "foresay_store_epoch 1\n", "foresay_store_admitted{shard=\"1\"} 1\n",
			"foresay_store_blocked_transactions{shard=\"0\"} 0\n")
	})
}

// figures looks at the figures of a store, in which "k" was written and read, after a write that is
// refused.
func (w *world) figures() {
	w.Helper()
	w.client(func(ctx context.Context, conn *Client, _ *client.Client) {
		once, err := conn.Transactions(client.Spec, 1)
		if err != nil {
			w.Fatal(err)
		}
		err = once.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			if _, _, err := tx.Get(ctx, "k"); err != nil {
				return err
			}
			if err := put(ctx, once, "k", "meanwhile"); err != nil { // another one
				return err
			}
			return tx.Put("k", []byte("late"))
		})
		if err == nil {
			w.Error("a transaction was committed that had read what was changed meanwhile")
		}
		time.Sleep(time.Second) // all sites carry it out
	})
	for machine := range w.running {
		page := w.page(machine, "/metrics", http.StatusOK)
		metricstest.Check(w, page, "foresay_store_")
		metricstest.Documented(w, []string{page}, "foresay_store_", "../../docs/store.md",
			slices.Concat(arrivalFigures(), speculationFigures())...)
		for _, want := range []string{
			`foresay_store_aborted_transactions_total\{cause="stale read",shard="\d"\} 1`,
			`foresay_store_refusing_votes_total\{cause="stale read",shard="\d"\} 1`,
			`foresay_store_committed_transactions_total\{shard="\d"\} [1-9]`,
			`foresay_store_accepting_votes_total\{shard="\d"\} [1-9]`,
			`foresay_store_commit_answers_total\{answer="no",cause="stale read"\} 1`,
			`foresay_store_request_duration_seconds_bucket\{code="OK",method="Commit",le="0.02"\} [1-9]`,
			`foresay_store_request_duration_seconds_count\{code="OK",method="Read"\} [1-9]`,
			`foresay_store_requests_in_flight\{method="Commit"\} 0`,
			`foresay_store_disk_commit_duration_seconds_count [1-9]`,
			`foresay_store_queued_messages\{node="shard-1"\} 0`,
			`foresay_store_reachable_peer_nodes 8`,
			`process_resident_memory_bytes [1-9]`,
		} {
			if !regexp.MustCompile(`(?m)^` + want).MatchString(page) {
				w.Errorf("machine %s: /metrics does not have %s:\n%s", machine, want, page)
			}
		}
	}
}

// speculationFigures are those of stores whose transactions build on each other.
func speculationFigures() (names []string) {
	for _, name := range []string{
		"speculation_local_commits_total", "speculation_final_commits_total", "speculation_building_transactions_total",
		"speculation_misspeculated_transactions_total", "speculation_aborted_transactions_total",
		"speculation_chain_length", "speculation_unfinal_transactions", "speculation_blocked_transactions",
		"speculation_oldest_blocked_seconds", "serves_snapshots", "silent_readers", "ceiling_ahead_seconds",
		"horizon_age_seconds",
	} {
		names = append(names, "foresay_store_"+name)
	}
	return names
}

// TestSpeculationFigures: what such a store's machines say of it.
func TestSpeculationFigures(t *testing.T) {
	most := uint64(1)
	s := SpeculationStatus{LocalCommits: 9, Misspeculated: 2, FinalCommits: 8, Builders: 5, Blocked: 3, Unfinal: 4,
		OldestBlockedSeconds: 1.5, Aborted: []CauseCount{{"cascade", 2}},
		Chains: []ChainCount{{&most, 7}, {nil, 2}}, chainSum: 13}
	got := httptest.NewRecorder()
	metrics.Handler(metrics.NewRegistry(), func(_ context.Context, page *metrics.Page) error {
		tellSpeculation(page, nil)
		tellSpeculation(page, &s)
		tellSnapshots(page, 0, nil)
		tellSnapshots(page, 1, &SnapshotStatus{Serves: true, Silent: []string{"b"}, CeilingAheadSeconds: 0.5,
			HorizonAgeSeconds: 60})
		return nil
	}).ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	page := got.Body.String()
	metricstest.Check(t, page, "foresay_store_")
	metricstest.Documented(t, []string{page}, "foresay_store_speculation_", "../../docs/store.md")
	for _, name := range speculationFigures() {
		if !strings.Contains(page, "# TYPE "+name+" ") {
			t.Errorf("there is no %s", name)
		}
	}
	for _, want := range []string{
		`speculation_local_commits_total 9`, `speculation_misspeculated_transactions_total 2`,
		`speculation_final_commits_total 8`, `speculation_building_transactions_total 5`,
		`speculation_aborted_transactions_total{cause="cascade"} 2`, `speculation_chain_length_bucket{le="1"} 7`,
		`speculation_chain_length_bucket{le="+Inf"} 9`, `speculation_chain_length_sum 13`,
		`speculation_blocked_transactions 3`, `speculation_oldest_blocked_seconds 1.5`,
		`speculation_unfinal_transactions 4`, `serves_snapshots{shard="1"} 1`, `silent_readers{shard="1"} 1`,
		`ceiling_ahead_seconds{shard="1"} 0.5`, `horizon_age_seconds{shard="1"} 60`,
	} {
		if !strings.Contains(page, "\nforesay_store_"+want+"\n") {
			t.Errorf("/metrics does not have %s:\n%s", want, page)
		}
	}
}

// arrivalFigures are those of stores whose requests are handled in the order of their arrival.
func arrivalFigures() (names []string) {
	for _, name := range []string{
		"hold_duration_seconds", "holding_requests", "late_requests_total", "full_requests_total",
	} {
		names = append(names, "foresay_store_arrival_"+name)
	}
	return names
}

// TestArrivalFigures: what such a store's machines say of it.
func TestArrivalFigures(t *testing.T) {
	o := store.OrderStatus{Holding: 3, Held: 9, Late: 4, Full: 5, Sum: 90 * time.Millisecond}
	o.Times[0], o.Times[4], o.Times[store.HeldCounts-1] = 1, 2, 3
	got := httptest.NewRecorder()
	metrics.Handler(metrics.NewRegistry(), func(_ context.Context, page *metrics.Page) error {
		tellOrder(page, "0", nil) // one without that
		tellOrder(page, "1", &o)
		return nil
	}).ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	page := got.Body.String()
	metricstest.Check(t, page, "foresay_store_")
	metricstest.Documented(t, []string{page}, "foresay_store_arrival_", "../../docs/store.md")
	for _, name := range arrivalFigures() {
		if !strings.Contains(page, "# TYPE "+name+" ") {
			t.Errorf("there is no %s", name)
		}
	}
	for _, want := range []string{
		`hold_duration_seconds_bucket{shard="1",le="0.001"} 1`, `hold_duration_seconds_bucket{shard="1",le="0.008"} 1`,
		`hold_duration_seconds_bucket{shard="1",le="0.016"} 3`, `hold_duration_seconds_bucket{shard="1",le="1.024"} 3`,
		`hold_duration_seconds_bucket{shard="1",le="+Inf"} 6`, `hold_duration_seconds_sum{shard="1"} 0.09`,
		`holding_requests{shard="1"} 3`, `late_requests_total{shard="1"} 4`, `full_requests_total{shard="1"} 5`,
	} {
		if !strings.Contains(page, "\nforesay_store_arrival_"+want+"\n") {
			t.Errorf("/metrics does not have %s:\n%s", want, page)
		}
	}
}

// page looks at what a machine's page says, and returns it.
func (w *world) page(machine, path string, code int, want ...string) string {
	w.Helper()
	got := httptest.NewRecorder()
	w.running[machine].page().ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
	if got.Code != code {
		w.Errorf("%s has the code %d, want %d", path, got.Code, code)
	}
	for _, line := range want {
		if !strings.Contains(got.Body.String(), line) {
			w.Errorf("%s does not have %q:\n%s", path, line, got.Body)
		}
	}
	return got.Body.String()
}

func TestLostDiskIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start("a", "b", "c")
		w.client(func(ctx context.Context, conn *Client, c *client.Client) { w.ready(ctx, conn) })
		w.stop("c")
		if err := os.RemoveAll(filepath.Join(w.dir, "data-c")); err != nil {
			t.Fatal(err)
		}
		for range 2 { // and it stays so
			w.start("c")
			err := <-w.running["c"].done
			delete(w.running, "c")
			if refused, ok := errors.AsType[*machine.RefusedError](err); !ok || refused.Machine != "c" {
				t.Errorf("the machine without its disk ended with %v, want to be refused", err)
			}
		}
	})
}

// TestDirectoriesHaveOneTenant: a machine takes no other's directory, and does not go back to an
// earlier epoch.
func TestDirectoriesHaveOneTenant(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start("a")
		w.stop("a")
		refuse := func(want string) {
			t.Helper()
			r, err := w.open("a")
			if err == nil {
				r.close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the machine opened with %v, want an error with %q", err, want)
			}
		}
		epoch := func(n uint64) {
			t.Helper()
			name := filepath.Join(w.dir, storeconfig.StoreFile)
			s, err := storeconfig.ReadStore(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Epoch = n
			if err := configfile.Write(name, s); err != nil {
				t.Fatal(err)
			}
		}
		epoch(2)
		w.start("a")
		w.stop("a")
		epoch(1)
		refuse("the file store.json is of epoch 1, and the machine has run in epoch 2")
		epoch(2)
		if err := os.Rename(filepath.Join(w.dir, "data-a"), filepath.Join(w.dir, "data-b")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("data-b", filepath.Join(w.dir, "data-a")); err != nil {
			t.Fatal(err)
		}
		w.start("a") // a directory may be moved
		w.stop("a")
		r, err := w.open("b")
		if err == nil {
			r.close()
		}
		if err == nil || !strings.Contains(err.Error(), "is that of machine a of test, not of b of test") {
			t.Errorf("machine b opened a's directory with %v", err)
		}
	})
}

func TestStrangersAreTurnedAway(t *testing.T) {
	other := t.TempDir()
	stranger, err := storeconfig.Init(storeconfig.InitOptions{
		Dir: other, Cluster: "test", Shards: 2,
		Sites: []storeconfig.Site{{Name: "a", Machines: []storeconfig.Machine{{Peers: "a:1", Client: "a:2"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(w *world) {
		w.start("a")
		// It does not believe a; neither does a believe a client without a certificate of its
		// authority.
		mine, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
		if err != nil {
			t.Fatal(err)
		}
		half := *stranger
		half.TLS = &configfile.TLSFiles{CA: mine.TLS.CA, Cert: stranger.TLS.Cert, Key: stranger.TLS.Key}
		for want, cfg := range map[string]*storeconfig.ClientConfig{"certificate": stranger, "tls": &half} {
			conn, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext("z")})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			s := conn.Status(ctx)
			cancel()
			conn.Close()
			if s[0].State != Unreachable || !strings.Contains(s[0].Error, want) {
				t.Errorf("a stranger's status is %+v, want one that tells of %s", s[0], want)
			}
		}
	})
}

// A machine that has another one's certificate says so at the start: others would refuse each
// message of its.
func TestCertificateOfAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{".pem", "-key.pem"} {
			data, err := os.ReadFile(filepath.Join(w.dir, "machine-b"+name))
			if err == nil {
				err = os.WriteFile(filepath.Join(w.dir, "machine-a"+name), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := w.open("a")
		if err == nil {
			r.close()
		}
		if err == nil || !strings.Contains(err.Error(), "its certificate is another machine's") {
			t.Errorf("the machine opened with %v", err)
		}
	})
}

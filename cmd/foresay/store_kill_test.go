package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

const (
	storeKillClients = 6
	storeKillKeys    = 300 // while a machine is away, those stay blocked that are fought for
	storeKillCommits = 60  // before a kill and afterwards
	storeKillAway    = 30  // while the machine is away
	storeKillShards  = 3
	// storeKillCoordinated is how many commits there are between the moment at which a group without
	// keys is led at its site and the one at which its machine is killed.
	storeKillCoordinated = 10
)

// keysVariable says how many keys TestStoreIsOperated loads.
const keysVariable = "FORESAY_KEYS"

// A storeKillSetting is a store whose machines are killed.
type storeKillSetting struct {
	protocol, mode string
	sites          int
	replicas       int // of each partition; 0: all sites have all
}

// TestStoreKills kills machines of a store of each protocol, which are processes of their own,
// while clients make transactions: each time with SIGKILL, and starts them again with their disks.
// Meanwhile partitions that have leaders are led elsewhere, before each kill and after it. Where
// groups without keys coordinate, the machine that is killed leads the group of its site, and has
// just coordinated transactions by it.
// Once all are back nothing is unknown or blocked any more, and all that was committed must be at
// the level that the protocol promises. FORESAY_KILLS says how often; 1 is usual, and with more
// there are nine machines of STR, too.
func TestStoreKills(t *testing.T) {
	kills, err := strconv.Atoi(cmp.Or(os.Getenv(killsVariable), "1"))
	if err != nil || kills < 1 {
		t.Fatalf("%s is %q", killsVariable, os.Getenv(killsVariable))
	}
	settings := map[string]storeKillSetting{
		"carousel-direct": {protocol: "carousel", mode: "direct", sites: 5, replicas: 3},
	}
	for _, protocol := range catalog.StoreNames() {
		settings[protocol] = storeKillSetting{protocol: protocol, sites: 3}
	}
	if kills > 1 { // nine processes and their clients take what two cores have
		settings["str-nine"] = storeKillSetting{protocol: "str", sites: 9, replicas: 6}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t.Run(name, func(t *testing.T) {
			w := newStoreKillWorld(t, settings[name])
			stop := w.drive()
			random := rand.New(rand.NewPCG(2, 0))
			for range kills {
				w.commits(storeKillCommits)
				victim := w.machines[random.IntN(len(w.machines))]
				w.lead(w.partitionAt(random, victim), victim)
				if w.coordinating {
					victim = w.busiest()
					w.lead(storeKillShards+slices.Index(w.machines, victim), victim)
					w.commits(storeKillCoordinated)
				}
				w.kill(victim)
				w.commits(storeKillAway)
				w.serve(victim)
				w.ready()
				next := w.machines[random.IntN(len(w.machines))]
				w.lead(w.partitionAt(random, next), next)
			}
			w.commits(storeKillCommits)
			w.judge(stop())
			w.halt(w.machines...)
		})
	}
}

// TestStoreIsOperated does to three machines, which are processes of their own, what operators do.
// One is killed before there is anything in the store: a load succeeds without it, and leaves
// nothing blocked. It comes back, and while clients make transactions another one takes its place:
// no transaction fails, and all that was committed is strictly serializable. FORESAY_KEYS says how
// many keys are loaded; 2000 is usual.
func TestStoreIsOperated(t *testing.T) {
	const first = 10_000 // above those of the clients
	keys, err := strconv.Atoi(cmp.Or(os.Getenv(keysVariable), "2000"))
	if err != nil || keys < 1 {
		t.Fatalf("%s is %q", keysVariable, os.Getenv(keysVariable))
	}
	w := newStoreKillWorld(t, storeKillSetting{protocol: "replicatedcommit", sites: 3})
	w.kill("c")
	w.foresay("store", "load", "--from", strconv.Itoa(first), "--keys", strconv.Itoa(first+keys),
		"--client", storeconfig.ClientFile)
	conn := w.dial()
	for _, s := range conn.Status(t.Context()) {
		for _, shard := range s.Shards {
			if shard.Blocked > 0 || shard.Locked > 0 {
				t.Errorf("after a load without machine c, machine %s has %d blocked transactions and %d locked keys",
					s.Machine, shard.Blocked, shard.Locked)
			}
		}
	}
	conn.Close()
	w.serve("c")
	w.ready()

	stop := w.drive()
	w.commits(storeKillCommits)
	d := []storeconfig.Site{{Name: "d"}}
	if err := storeconfig.Place(d, 1, "127.0.0.1", 0); err != nil {
		t.Fatal(err)
	}
	m := d[0].Machines[0]
	w.foresay("store", "resolve", "--dir", ".", "--site", "c", "--yes",
		"--replace", fmt.Sprintf("d=%s/%s", m.Peers, m.Client))
	w.commits(storeKillAway)
	w.serve("d")
	if w.cfg, err = storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), ""); err != nil {
		t.Fatal(err)
	}
	w.ready()
	w.commits(storeKillCommits)
	clients := stop()
	for _, c := range clients {
		for _, x := range c.txns {
			if x.err != nil {
				t.Errorf("while machine d took the place of c, a transaction of client %d failed: %v", c.n, x.err)
			}
		}
	}
	w.judge(clients)
	left := w.running["c"]
	delete(w.running, "c")
	if err := left.cmd.Wait(); err == nil { // it ends by itself
		t.Error("machine c, which has left, ended well")
	}
	w.halt("a", "b", "d")
}

type storeKillWorld struct {
	*testing.T
	dir       string
	level     history.Level
	stamped   bool // store.Protocol.Stamped
	leads     bool
	cfg       *storeconfig.ClientConfig
	start     time.Time
	running   map[string]*replica
	committed atomic.Int64

	machines     []string // one at each site, with the site's name
	coordinating bool     // there is a group for each site that only coordinates
	mu           sync.Mutex
	decided      map[string]int // commits by the site whose word was the last, since they were counted last
}

// newStoreKillWorld returns a store of machines a, b, c and so on that takes part.
func newStoreKillWorld(t *testing.T, set storeKillSetting) *storeKillWorld {
	t.Helper()
	p, err := catalog.Store(set.protocol)
	if err == nil {
		p, err = p.In(set.mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &storeKillWorld{T: t, dir: t.TempDir(), start: time.Now(), level: p.Promises(), stamped: p.Stamped,
		leads: p.Leads, running: map[string]*replica{}, coordinating: p.Coordinating, decided: map[string]int{}}
	var sites []storeconfig.Site
	for i := range set.sites {
		w.machines = append(w.machines, string(rune('a'+i)))
		sites = append(sites, storeconfig.Site{Name: w.machines[i]})
	}
	if err := storeconfig.Place(sites, 1, "127.0.0.1", 0); err != nil {
		t.Fatal(err)
	}
	var placement [][]string
	if set.replicas > 0 {
		if placement, err = store.Ring(w.machines, storeKillShards, set.replicas, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.cfg, err = storeconfig.Init(storeconfig.InitOptions{
		Dir: w.dir, Cluster: "kills", Protocol: set.protocol, Mode: set.mode, Shards: storeKillShards, Sites: sites,
		RoundTrip: "50ms", Placement: placement,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range w.running {
			_ = r.end(syscall.SIGKILL) // that it was killed is its error
		}
	})
	for _, s := range sites {
		w.serve(s.Name)
	}
	w.ready()
	return w
}

// foresay runs a command in the store's directory.
func (w *storeKillWorld) foresay(args ...string) {
	w.Helper()
	c := exec.Command("foresay", args...)
	c.Dir = w.dir
	if out, err := c.CombinedOutput(); err != nil {
		w.Fatalf("foresay %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// kill ends a machine as a loss of power does.
func (w *storeKillWorld) kill(name string) {
	w.Helper()
	r := w.running[name]
	delete(w.running, name)
	if err := r.end(syscall.SIGKILL); err == nil {
		w.Fatalf("machine %s ended well before it was killed", name)
	}
}

// halt has machines end well.
func (w *storeKillWorld) halt(names ...string) {
	w.Helper()
	for _, name := range names {
		r := w.running[name]
		delete(w.running, name)
		if err := r.end(syscall.SIGTERM); err != nil {
			w.Errorf("machine %s: %v\n%s", name, err, r.log.String())
		}
	}
}

// drive has clients make transactions until stop is called, which returns them.
func (w *storeKillWorld) drive() (stop func() []*storeKillClient) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var wg sync.WaitGroup
	clients := make([]*storeKillClient, storeKillClients)
	for i := range clients {
		clients[i] = &storeKillClient{world: w, n: i, random: rand.New(rand.NewPCG(1, uint64(i)))}
		conn := w.dial()
		wg.Go(func() {
			defer conn.Close()
			clients[i].run(ctx, conn)
		})
	}
	return func() []*storeKillClient {
		cancel()
		wg.Wait()
		return clients
	}
}

// serve starts a machine.
func (w *storeKillWorld) serve(name string) {
	w.Helper()
	r, err := startMachine(w.dir, filepath.Join(w.dir, storeconfig.MachineFile(name)))
	if err != nil {
		w.Fatal(err)
	}
	w.running[name] = r
}

func (w *storeKillWorld) dial() *storeservice.Client {
	w.Helper()
	c, err := storeservice.Dial(w.cfg, storeservice.ClientOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// ready waits until all machines take part.
func (w *storeKillWorld) ready() {
	w.Helper()
	w.await("up", storeservice.Ready)
}

// await waits until what all machines say of themselves is as it should be.
func (w *storeKillWorld) await(what string, holds func([]storeservice.Status) bool) {
	w.Helper()
	c := w.dial()
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.Context(), killPatience)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		s := c.Status(ctx)
		if holds(s) {
			return
		}
		if ctx.Err() != nil {
			w.Fatalf("not all machines were %s within %v: %s\n%s", what, killPatience, storeservice.Complaints(s), w.status())
		}
	}
}

// partitionAt returns one of the partitions of which a site has a copy.
func (w *storeKillWorld) partitionAt(random *rand.Rand, site string) int {
	t := w.cfg.Store.Topology()
	all := random.Perm(storeKillShards)
	return all[slices.IndexFunc(all, func(k int) bool { return t.Has(slices.Index(w.machines, site), k) })]
}

// busiest returns the site by whose word most transactions have committed since this was asked
// last.
func (w *storeKillWorld) busiest() string {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	best := slices.MaxFunc(w.machines, func(a, b string) int { return cmp.Compare(w.decided[a], w.decided[b]) })
	if w.decided[best] == 0 {
		w.Fatal("no site has had a transaction committed")
	}
	clear(w.decided)
	return best
}

// lead has a site lead a partition, if the protocol has leaders.
func (w *storeKillWorld) lead(partition int, site string) {
	w.Helper()
	if !w.leads {
		return
	}
	c := w.dial()
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.Context(), killPatience)
	defer cancel()
	if _, err := c.HandOver(ctx, partition, site); err != nil {
		w.Fatal(err)
	}
}

// commits waits until n more transactions have committed.
func (w *storeKillWorld) commits(n int64) {
	w.Helper()
	goal, deadline := w.committed.Load()+n, time.Now().Add(killPatience)
	for tick := time.NewTicker(5 * time.Millisecond); w.committed.Load() < goal; <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%d of %d transactions committed within %v\n%s", n-goal+w.committed.Load(), n, killPatience, w.status())
		}
	}
}

// status says how the machines are.
func (w *storeKillWorld) status() string {
	c := exec.Command("foresay", "store", "status", "--client", storeconfig.ClientFile)
	c.Dir = w.dir
	out, err := c.CombinedOutput()
	if err != nil { // as it is while a machine is away
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

// A storeKillTxn is one transaction of a client, with all its attempts.
type storeKillTxn struct {
	client     int
	begin, end time.Duration
	attempts   []*client.Trace
	reads      map[string]string // of the last attempt; "" is nothing
	writes     []string          // the keys
	n          int
	err        error
}

// value is what an attempt writes: nobody else writes the same.
func (x *storeKillTxn) value(attempt int) string {
	return fmt.Sprintf("%d.%d.%d", x.client, x.n, attempt)
}

// A storeKillClient makes one transaction after the other: each reads some keys and overwrites some
// of them.
type storeKillClient struct {
	world  *storeKillWorld
	n      int
	random *rand.Rand
	txns   []*storeKillTxn
}

func (c *storeKillClient) run(ctx context.Context, conn *storeservice.Client) {
	txns, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		c.world.Error(err)
		return
	}
	for ctx.Err() == nil {
		c.txn(txns)
	}
}

func (c *storeKillClient) txn(txns *client.Client) {
	x := &storeKillTxn{client: c.n, n: len(c.txns), begin: time.Since(c.world.start)}
	c.txns = append(c.txns, x)
	keys := c.random.Perm(storeKillKeys)[:3]
	for _, k := range keys[:1+c.random.IntN(2)] {
		x.writes = append(x.writes, fmt.Sprint("k", k))
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	ctx = client.WithTrace(ctx, func(t *client.Trace) { x.attempts = append(x.attempts, t) })
	x.reads, x.err = client.Run(ctx, txns, func(ctx context.Context, tx *client.Tx) (map[string]string, error) {
		reads := map[string]string{}
		for _, k := range keys {
			v, _, err := tx.Get(ctx, fmt.Sprint("k", k))
			if err != nil {
				return nil, err
			}
			reads[fmt.Sprint("k", k)] = string(v)
		}
		for _, k := range x.writes {
			if err := tx.Put(k, []byte(x.value(tx.Attempt()))); err != nil {
				return nil, err
			}
		}
		return reads, nil
	})
	x.end = time.Since(c.world.start)
	if x.err == nil {
		c.world.committed.Add(1)
		c.world.mu.Lock()
		c.world.decided[x.attempts[len(x.attempts)-1].Site]++
		c.world.mu.Unlock()
	}
}

// judge finds out what became of the transactions whose clients were not told, and checks all of
// them.
func (w *storeKillWorld) judge(clients []*storeKillClient) {
	conn := w.dial()
	defer conn.Close()
	txns, err := conn.Transactions(client.GRPC, 0)
	if err != nil {
		w.Fatal(err)
	}
	h := history.Transactions{Versions: map[string][]string{}}
	versions := map[string][]storeKillWrite{}
	unknown, aborted := 0, 0
	id := history.TxnID(0)
	add := func(x *storeKillTxn, attempt int, t history.Txn) {
		id++
		t.ID, t.Begin, t.End = id, x.begin, x.end
		for _, k := range x.writes {
			t.Accesses = append(t.Accesses, history.Access{Kind: history.Write, Key: k, Value: x.value(attempt)})
		}
		h.Txns = append(h.Txns, t)
	}
	for _, c := range clients {
		for _, x := range c.txns {
			last := x.attempts[len(x.attempts)-1]
			told := x.err == nil
			if !told && last.Txn.ID.IsZero() {
				// both sites that are there could have answered
				w.Errorf("a transaction of client %d failed: %v", x.client, x.err)
				continue
			}
			if !told {
				unknown++
				told = w.resolve(txns, x.err)
			}
			for _, t := range x.attempts[:len(x.attempts)-1] {
				aborted++
				add(x, t.Attempt, history.Txn{Client: history.Client(1000 + id), Outcome: history.Failed})
			}
			if !told {
				add(x, last.Attempt, history.Txn{Client: history.Client(1000 + id), Outcome: history.Failed})
				continue
			}
			var reads []history.Access
			for _, k := range slices.Sorted(maps.Keys(x.reads)) {
				reads = append(reads, history.Access{Kind: history.Read, Key: k, Value: x.reads[k]})
			}
			outcome := history.Returned
			if x.err != nil {
				outcome = history.Unknown // when it ended nobody knows, and what it read is not known either
			}
			add(x, last.Attempt, history.Txn{Client: history.Client(x.client), Outcome: outcome, Accesses: reads})
			for _, k := range x.writes {
				at := last.Txn.ID
				if w.stamped {
					at = lastRead(last, k)
				}
				versions[k] = append(versions[k], storeKillWrite{at: at, value: x.value(last.Attempt)})
			}
		}
	}
	for k, all := range versions {
		slices.SortStableFunc(all, func(a, b storeKillWrite) int { return a.at.Compare(b.at) })
		for _, v := range all {
			h.Versions[k] = append(h.Versions[k], v.value)
		}
	}
	report, err := history.CheckTransactions(h, w.level)
	if err == nil && report.Verdict() != history.OK {
		err = errors.New(report.String())
	}
	if err != nil {
		w.Error(err)
	}
	w.Logf("%d transactions committed, %d attempts aborted; what became of %d was told later", w.committed.Load(), aborted,
		unknown)
}

// A storeKillWrite is what a transaction left at a key. Writes are in the order of at: their
// version, or where the store chooses versions and does not tell them, the version that the writer
// had read, as each writer reads what it writes.
type storeKillWrite struct {
	at    store.Version
	value string
}

// lastRead returns the version of a key that an attempt saw.
func lastRead(t *client.Trace, key string) store.Version {
	for _, r := range slices.Backward(t.Reads) {
		if string(r.Key) == key {
			return r.Version
		}
	}
	return store.Version{}
}

// resolve asks what became of a transaction until somebody knows: all machines are up.
func (w *storeKillWorld) resolve(c *client.Client, err error) (committed bool) {
	ctx, cancel := context.WithTimeout(w.Context(), killPatience)
	defer cancel()
	for {
		var txn store.Txn
		if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
			txn = unknown.Txn
		} else if blocked, ok := errors.AsType[*client.BlockedError](err); ok {
			txn = blocked.Txn
		} else if _, ok := errors.AsType[*client.AbortedError](err); ok {
			return false
		} else if err != nil {
			w.Fatalf("nobody can tell what became of a transaction: %v", err)
		} else {
			return true
		}
		if ctx.Err() != nil {
			w.Fatalf("nobody could tell within %v what became of a transaction: %v", killPatience, err)
		}
		err = c.Resolve(ctx, txn)
	}
}

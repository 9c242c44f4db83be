package geostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

// Sizes of the experiment.
const (
	peersServers    = 3
	peersClients    = 48
	peersKeys       = 10_000
	peersQuickKeys  = 500
	peersValueBytes = 100
)

func peersExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-peers",
		Summary: "48 clients of the store and of etcd, three processes each on this machine, in turns: operations per " +
			"second, latency, the servers' processor time",
		Modes:   []bench.Mode{bench.Real},
		Measure: besideEtcd,
		Figures: []figure.Spec{
			{
				Suffix: "ops", Title: "The store beside etcd, 48 clients, three processes on one machine", Y: "ops_per_s",
				YLabel: "operations per second",
				Across: []string{"op"}, Series: []string{"system"},
			},
			{
				Suffix: "cpu", Title: "The store beside etcd: processor time of the servers", Y: "server_us_per_op",
				YLabel: "processor time per operation (µs)",
				Across: []string{"op"}, Series: []string{"system"},
			},
		},
	}
}

// A rival is a system with servers of its own. Nothing of it is encrypted, and all of it is synced
// to disk.
type rival struct {
	name    string
	servers *replicated.Processes
	close   func()
	files   *rivalFiles // that the servers read, if they are the store's
	put     func(ctx context.Context, client int, key string) error
	change  func(ctx context.Context, client int, a, b string) error // reads and writes both
	get     func(ctx context.Context, client int, key string) error
}

// errNoEtcd says how to get what the experiment compares with.
var errNoEtcd = errors.New("there is no program etcd on the PATH; Debian's package etcd-server has it: apt-get " +
	"install etcd-server")

func besideEtcd(ctx context.Context, w bench.Run) (rows []table.Row, err error) {
	etcd := replicated.Etcd()
	if etcd == "" {
		return nil, errNoEtcd
	}
	if w.Program == "" {
		return nil, bench.ErrNoProgram
	}
	err = bench.WithTempDir(func(dir string) error {
		store, err := startRivalStore(ctx, w.Program, dir, rivalOptions{roundTrip: rivalRoundTrip, retain: time.Minute})
		if err != nil {
			return err
		}
		defer store.close()
		other, err := startRivalEtcd(ctx, etcd, dir)
		if err != nil {
			return err
		}
		defer other.close()
		rows, err = takeTurns(ctx, w, []rival{other, store})
		return err
	})
	return rows, err
}

// takeTurns measures each operation. The first rival is what the others are compared with.
func takeTurns(ctx context.Context, w bench.Run, rivals []rival) ([]table.Row, error) {
	for _, r := range rivals {
		w.Step(0, 3, "loading "+r.name)
		if err := r.load(ctx, bench.Pick(w.Options, peersQuickKeys, peersKeys)); err != nil {
			return nil, fmt.Errorf("%s: load: %w", r.name, err)
		}
	}
	var rows []table.Row
	for i, op := range []string{"put", "change", "get"} {
		rounds := make([][]replicated.Turn, len(rivals))
		for n := range bench.Pick(w.Options, 2, 9) {
			for _, j := range bench.Random(w.Seed, uint64(i), uint64(n)).Perm(len(rivals)) {
				w.Step(i, 3, fmt.Sprintf("%s %s round=%d", op, rivals[j].name, n+1))
				r, err := rivals[j].turn(ctx, w, op, w.Seed+uint64(n))
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", rivals[j].name, op, err)
				}
				rounds[j] = append(rounds[j], r)
			}
		}
		for j, r := range rivals {
			rows = append(rows, rivalRow(op, r.name, rounds[j], rounds[0]))
		}
	}
	return rows, nil
}

// rivalRow has the medians of the rounds, and those of the ratios within a round.
func rivalRow(op, name string, own, base []replicated.Turn) table.Row {
	var took []time.Duration
	var rates, cpu, rateRatio, cpuRatio []float64
	for i, r := range own {
		took = append(took, r.Took...)
		rates, cpu = append(rates, r.PerSecond), append(cpu, r.CPUPerOp)
		rateRatio = append(rateRatio, r.PerSecond/base[i].PerSecond)
		if base[i].CPUPerOp > 0 {
			cpuRatio = append(cpuRatio, r.CPUPerOp/base[i].CPUPerOp)
		}
	}
	slices.Sort(took)
	row := table.Row{
		table.Is("op", op), table.Is("system", name), table.Is("clients", peersClients),
		table.Is("value_bytes", peersValueBytes), table.Measure("ops_per_s", table.Median(rates)),
		table.Measure("p50_ms", table.Ms(table.Quantile(took, 0.5))),
		table.Measure("p99_ms", table.Ms(table.Quantile(took, 0.99))),
		table.Measure("ops_ratio_to_etcd", table.Median(rateRatio)),
	}
	if len(cpuRatio) > 0 {
		row = append(row, table.Measure("server_us_per_op", table.Median(cpu)),
			table.Measure("server_ratio_to_etcd", table.Median(cpuRatio)))
	}
	return row
}

func peersKey(n int) string { return fmt.Sprintf("key-%05d", n) }

// load puts all keys. The first ones are tried until the servers are ready.
func (r rival) load(ctx context.Context, keys int) error {
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for client := range peersClients {
		for {
			try, end := context.WithTimeout(ready, 5*time.Second)
			err := r.put(try, client, peersKey(client))
			end()
			if err == nil {
				break
			}
			if ready.Err() != nil {
				return errors.Join(err, context.Cause(r.servers.Context()))
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-r.servers.Context().Done():
				return context.Cause(r.servers.Context())
			}
		}
	}
	return r.all(func(client int) error {
		for n := client; n < keys; n += peersClients {
			if err := r.put(ctx, client, peersKey(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// all runs something for each client, and returns the first error.
func (r rival) all(f func(client int) error) error {
	var wg sync.WaitGroup
	failed := make([]error, peersClients)
	for client := range peersClients {
		wg.Go(func() { failed[client] = f(client) })
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return errors.Join(err, context.Cause(r.servers.Context()))
		}
	}
	return nil
}

// turn has the clients make one operation after the other. Those on their way at the end are part
// of it.
func (r rival) turn(ctx context.Context, w bench.Run, op string, seed uint64) (replicated.Turn, error) {
	keys, lasting := bench.Pick(w.Options, peersQuickKeys, peersKeys), bench.Pick(w.Options, 300*time.Millisecond,
		2*time.Second)
	began, cpu := time.Now(), r.servers.CPU()
	took := make([][]time.Duration, peersClients)
	err := r.all(func(client int) error {
		chance := rand.New(rand.NewPCG(seed, uint64(client)))
		for ctx.Err() == nil && time.Since(began) < lasting {
			start := time.Now()
			if err := r.do(ctx, client, op, chance.IntN(keys), 1+chance.IntN(keys-1), keys); err != nil {
				return err
			}
			took[client] = append(took[client], time.Since(start))
		}
		return context.Cause(ctx)
	})
	out := replicated.NewTurn(took, time.Since(began), r.servers.CPU()-cpu)
	if err == nil && len(out.Took) == 0 {
		err = errors.New("no operation ended")
	}
	return out, err
}

// do makes an operation on a key and, if it is of two keys, one that is a little further.
func (r rival) do(ctx context.Context, client int, op string, key, further, keys int) error {
	switch op {
	case "put":
		return r.put(ctx, client, peersKey(key))
	case "get":
		return r.get(ctx, client, peersKey(key))
	default:
		return r.change(ctx, client, peersKey(key), peersKey((key+further)%keys))
	}
}

// startRivalEtcd starts etcd. A third of the clients share a connection, to a member of their own.
func startRivalEtcd(ctx context.Context, path, dir string) (r rival, err error) {
	servers, addresses, err := replicated.StartEtcd(ctx, path, dir, peersServers)
	if err != nil {
		return r, err
	}
	conns := make([]*replicated.EtcdConn, len(addresses))
	for i, a := range addresses {
		if conns[i], err = replicated.DialEtcd(a); err != nil {
			servers.Close()
			return r, err
		}
	}
	value := make([]byte, peersValueBytes)
	of := func(client int) *replicated.EtcdConn { return conns[client%len(conns)] }
	return rival{
		name: "etcd", servers: servers,
		close: func() {
			for _, c := range conns {
				c.Close()
			}
			servers.Close()
		},
		put: func(ctx context.Context, client int, key string) error {
			return of(client).Put(ctx, []byte(key), value)
		},
		get: func(ctx context.Context, client int, key string) error {
			_, err := of(client).Get(ctx, []byte(key))
			return err
		},
		// As etcd's package concurrency does it: a read of each key, and a transaction that
		// compares their revisions.
		change: func(ctx context.Context, client int, a, b string) error {
			keys := [][]byte{[]byte(a), []byte(b)}
			for {
				var revisions []uint64
				for _, key := range keys {
					n, err := of(client).Get(ctx, key)
					if err != nil {
						return err
					}
					revisions = append(revisions, n)
				}
				if ok, err := of(client).PutIf(ctx, keys, revisions, value); ok || err != nil {
					return err
				}
			}
		},
	}, nil
}

// startRivalStore starts three sites of a machine each. A third of the clients share a connection.
func startRivalStore(ctx context.Context, program, dir string, o rivalOptions) (r rival, err error) {
	files, err := writeRivalFiles(dir, o)
	if err != nil {
		return r, err
	}
	servers, err := replicated.StartStore(ctx, program, files.machines)
	if err != nil {
		return r, err
	}
	var conns []*storeservice.Client
	var clients []*client.Client
	end := func() {
		for _, c := range conns {
			c.Close()
		}
		servers.Close()
	}
	for range peersServers {
		conn, err := storeservice.Dial(files.client, storeservice.ClientOptions{})
		if err != nil {
			end()
			return r, err
		}
		conns = append(conns, conn)
		c, err := conn.Transactions(client.Spec, 0)
		if err != nil {
			end()
			return r, err
		}
		clients = append(clients, c)
	}
	value := make([]byte, peersValueBytes)
	txn := func(ctx context.Context, number int, reads, writes []string) error {
		return clients[number%len(clients)].Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			for _, key := range reads {
				_, ok, err := tx.Get(ctx, key)
				if err == nil && !ok {
					err = fmt.Errorf("there is no key %s", key)
				}
				if err != nil {
					return err
				}
			}
			for _, key := range writes {
				if err := tx.Put(key, value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return rival{
		name: "foresay", servers: servers, close: end, files: files,
		put: func(ctx context.Context, n int, key string) error { return txn(ctx, n, nil, []string{key}) },
		get: func(ctx context.Context, n int, key string) error { return txn(ctx, n, []string{key}, nil) },
		change: func(ctx context.Context, n int, a, b string) error {
			return txn(ctx, n, []string{a, b}, []string{a, b})
		},
	}, nil
}

// rivalRoundTrip keeps timeouts apart from what a busy machine takes.
const rivalRoundTrip = 100 * time.Millisecond

// rivalOptions are of the store's file.
type rivalOptions struct{ roundTrip, retain time.Duration }

// rivalFiles are what the processes of a store read. Nothing in it is encrypted.
type rivalFiles struct {
	dir      string
	client   *storeconfig.ClientConfig
	machines []string // the names of their files
	pages    []string // of their metrics
}

// writeRivalFiles writes the files of a store of three sites with a machine each.
func writeRivalFiles(dir string, o rivalOptions) (*rivalFiles, error) {
	f := &rivalFiles{dir: dir}
	var sites []storeconfig.Site
	for i := range peersServers {
		site, err := newRivalSite(i + 1)
		if err != nil {
			return nil, err
		}
		sites = append(sites, site)
	}
	err := f.write(storeconfig.StoreFile, storeconfig.Store{Cluster: "bench", Epoch: 1, Shards: siteShards, Sites: sites,
		RoundTrip: o.roundTrip.String(), Retain: o.retain.String()})
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		if err := f.addMachine(s.Name); err != nil {
			return nil, err
		}
	}
	const file = storeconfig.ClientFile
	if err := f.write(file, storeconfig.ClientConfig{StoreFile: storeconfig.StoreFile, Insecure: true}); err != nil {
		return nil, err
	}
	f.client, err = storeconfig.ReadClient(filepath.Join(dir, file), "")
	return f, err
}

// newRivalSite returns a site with a machine of the same name, at a place that is free.
func newRivalSite(number int) (s storeconfig.Site, err error) {
	m := storeconfig.Machine{Name: fmt.Sprint("site-", number)}
	if m.Peers, err = replicated.FreeAddress(); err != nil {
		return s, err
	}
	m.Client, err = replicated.FreeAddress()
	return storeconfig.Site{Name: m.Name, Number: number, Machines: []storeconfig.Machine{m}}, err
}

// addMachine writes the file of a machine.
func (f *rivalFiles) addMachine(name string) error {
	page, err := replicated.FreeAddress()
	if err != nil {
		return err
	}
	file := storeconfig.MachineFile(name)
	err = f.write(file, storeconfig.MachineConfig{StoreFile: storeconfig.StoreFile, Machine: name, Data: "data-" + name,
		Insecure: true, Metrics: page, Log: storeconfig.Log{Level: "warn"}})
	f.machines = append(f.machines, filepath.Join(f.dir, file))
	f.pages = append(f.pages, "http://"+page+"/metrics")
	return err
}

func (f *rivalFiles) write(name string, content any) error {
	b, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.dir, name), b, 0o600)
}

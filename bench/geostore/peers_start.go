package geostore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

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

package geostore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	rc "github.com/foresay/foresay/store/replicatedcommit"
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
	topology, pages, files, err := rivalFiles(dir, o)
	if err != nil {
		return r, err
	}
	servers, err := replicated.StartStore(ctx, program, files)
	if err != nil {
		return r, err
	}
	var conns []*front.Conn
	var clients []*client.Client
	end := func() {
		for _, c := range conns {
			c.Close()
		}
		servers.Close()
	}
	for i := range peersServers {
		conn, err := front.Dial(front.Config{Protocol: rc.Protocol(), Topology: topology, Insecure: true,
			RoundTrip: o.roundTrip, Seed: uint64(i + 1)})
		if err != nil {
			end()
			return r, err
		}
		conns = append(conns, conn)
		c, err := client.New(client.Config{Backend: conn})
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
		name: "foresay", servers: servers, close: end, pages: pages,
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

// rivalFiles writes the store's file and those of its machines, and returns where the pages of
// their metrics are.
func rivalFiles(dir string, o rivalOptions) (t store.Topology, pages, files []string, err error) {
	type machine struct {
		Name   string `json:"name"`
		Peers  string `json:"peers"`
		Client string `json:"client"`
	}
	type site struct {
		Name     string    `json:"name"`
		Number   int       `json:"number"`
		Machines []machine `json:"machines"`
	}
	t = store.Topology{Epoch: 1, Shards: siteShards}
	var sites []site
	for i := range peersServers {
		m := machine{Name: fmt.Sprint("site-", i+1)}
		if m.Peers, err = replicated.FreeAddress(); err != nil {
			return t, nil, nil, err
		}
		if m.Client, err = replicated.FreeAddress(); err != nil {
			return t, nil, nil, err
		}
		sites = append(sites, site{m.Name, i + 1, []machine{m}})
		t.Sites = append(t.Sites, store.TopologySite{Name: m.Name, Number: i + 1,
			Machines: []store.Machine{{Name: m.Name, Peers: m.Peers, Client: m.Client}}})
	}
	write := func(name string, content map[string]any) error {
		b, err := json.Marshal(content)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), b, 0o600)
	}
	err = write("store.json", map[string]any{
		"cluster": "bench", "epoch": t.Epoch, "shards": t.Shards, "sites": sites, "round_trip": o.roundTrip.String(),
		"retain": o.retain.String(),
	})
	if err != nil {
		return t, nil, nil, err
	}
	for _, s := range sites {
		page, err := replicated.FreeAddress()
		if err != nil {
			return t, nil, nil, err
		}
		err = write(s.Name+".json", map[string]any{
			"store": "store.json", "machine": s.Name, "data": "data-" + s.Name, "insecure": true, "metrics": page,
			"log": map[string]any{"level": "warn", "format": "text"},
		})
		if err != nil {
			return t, nil, nil, err
		}
		files, pages = append(files, filepath.Join(dir, s.Name+".json")), append(pages, "http://"+page+"/metrics")
	}
	return t, pages, files, nil
}

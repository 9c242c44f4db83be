package layered_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// TestMachines runs the store as any other: machines at three sites, the gRPC service, and clients
// of all modes at all sites, which add to the same counters.
func TestMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := []wan.Site{"a", "b", "c"}
		network := shape.NewNetwork(wan.Uniform(20*time.Millisecond, sites...), 1)
		defer network.Close()
		topology := store.Topology{Epoch: 1, Shards: 3}
		var configs []machine.Config
		for i, site := range sites {
			cfg := machine.Config{
				Protocol: layered.Protocol(), Cluster: "test", Machine: string(site) + "-1", PeerDial: network.DialContext(site),
				Insecure: true, Seed: uint64(i + 1), Check: true, RoundTrip: 20 * time.Millisecond,
			}
			var err error
			if cfg.PeerListener, err = network.Listen(site); err != nil {
				t.Fatal(err)
			}
			if cfg.ClientListener, err = network.Listen(site); err != nil {
				t.Fatal(err)
			}
			topology.Sites = append(topology.Sites, store.TopologySite{Name: string(site), Number: i + 1,
				Machines: []store.Machine{{
					Name: cfg.Machine, Peers: cfg.PeerListener.Addr().String(), Client: cfg.ClientListener.Addr().String(),
				}}})
			configs = append(configs, cfg)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		var nodes []*machine.Node
		for _, cfg := range configs {
			cfg.Topology = topology
			n, err := machine.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, n)
			running.Go(func() {
				if err := n.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		const each = 4
		var clients sync.WaitGroup
		modes := []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated, client.Auto}
		for i, mode := range modes {
			clients.Go(func() {
				conn, err := front.Dial(front.Config{
					Protocol: layered.Protocol(), Topology: topology, Insecure: true, Dial: network.DialContext(sites[i%3]),
					RoundTrip: 20 * time.Millisecond, Seed: uint64(i + 10),
				})
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				c, err := client.New(client.Config{Backend: conn, Mode: mode})
				if err != nil {
					t.Error(err)
					return
				}
				for range each {
					err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
						for _, key := range []string{"x", "y", "z"} {
							v, _, err := tx.Get(ctx, key)
							if err != nil {
								return err
							}
							if err := tx.Put(key, append(v, '+')); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Errorf("mode %v: %v", mode, err)
					}
				}
				if i > 0 {
					return
				}
				time.Sleep(time.Minute) // the others have ended
				n, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
					x, _, err := tx.Get(ctx, "x")
					if err != nil {
						return "", err
					}
					z, _, err := tx.Get(ctx, "z")
					return fmt.Sprint(len(x), len(z)), err
				})
				if want := fmt.Sprint(each*len(modes), each*len(modes)); err != nil || n != want {
					t.Errorf("the counters are %s (%v), want %s", n, err, want)
				}
			})
		}
		clients.Wait()
		time.Sleep(time.Second) // decisions are carried out
		for _, n := range nodes {
			st, err := n.Status(ctx)
			if err != nil || len(st.Shards) != 3 {
				t.Fatalf("the status is %v, %v", st, err)
			}
			for _, s := range st.Shards {
				if !s.Admitted || s.Undecided+s.Locks != 0 || s.Transactions == 0 && s.Shard != 0 {
					t.Errorf("a shard of machine %s is left as %v", st.Machine, s)
				}
			}
		}
	})
}

package docs_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// The code that store.md shows.

func deposit(ctx context.Context, file string, o storeservice.ClientOptions) error {
	cfg, err := storeconfig.ReadClient(file, "")
	if err != nil {
		return err
	}
	conn, err := storeservice.Dial(cfg, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	c, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		return err
	}
	return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		balance, _, err := tx.Get(ctx, "account/7")
		if err != nil {
			return err
		}
		return tx.Put("account/7", add(balance, 10))
	})
}

// add adds to a number in decimal; nothing is 0.
func add(balance []byte, amount int) []byte {
	n, _ := strconv.Atoi(string(balance))
	return strconv.AppendInt(nil, int64(n+amount), 10)
}

// TestStorePage deposits twice, by that code, in a store of three machines with disks and
// certificates.
func TestStorePage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		network := shape.NewNetwork(wan.Uniform(20*time.Millisecond, "a", "b", "c"), 1)
		var sites []storeconfig.Site
		for _, name := range []string{"a", "b", "c"} {
			sites = append(sites, storeconfig.Site{Name: name,
				Machines: []storeconfig.Machine{{Name: name, Peers: name + ":1", Client: name + ":2"}}})
		}
		files, err := storeconfig.Init(storeconfig.InitOptions{Dir: dir, Cluster: "docs", Shards: 1, Sites: sites,
			RoundTrip: "20ms"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			defer startStoreMachine(t, network, dir, s.Name)()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 2 {
			if err := deposit(ctx, filepath.Join(dir, storeconfig.ClientFile),
				storeservice.ClientOptions{Dial: network.DialContext("a")}); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := storeservice.Dial(files, storeservice.ClientOptions{Dial: network.DialContext("b")})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c, err := conn.Transactions(client.GRPC, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
			v, _, err := tx.Get(ctx, "account/7")
			return string(v), err
		})
		if err != nil || got != "20" {
			t.Errorf("the account has %q, %v", got, err)
		}
	})
}

// startStoreMachine starts a machine, and returns what ends it.
func startStoreMachine(t *testing.T, network *shape.Network, dir, name string) (stop func()) {
	t.Helper()
	cfg, err := storeconfig.ReadMachine(filepath.Join(dir, storeconfig.MachineFile(name)))
	if err != nil {
		t.Fatal(err)
	}
	peers, err := network.Listen(wan.Site(name))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := network.Listen(wan.Site(name))
	if err != nil {
		t.Fatal(err)
	}
	m, err := storeservice.OpenMachine(cfg, storeservice.MachineOptions{Peers: peers, Client: clients,
		Dial: network.DialContext(wan.Site(name))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

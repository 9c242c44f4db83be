package docs_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
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

// order makes three transactions, one after the other. Each sees what those before it did, and
// together they take as long as one.
func order(ctx context.Context, c *client.Client, item, customer string) (string, error) {
	return foresay.Do(ctx, func(ctx context.Context) (string, error) {
		number, err := count(ctx, c, "orders", 1)
		if err != nil {
			return "", err
		}
		if _, err := count(ctx, c, "stock/"+item, -1); err != nil {
			return "", err
		}
		if _, err := count(ctx, c, "bought/"+customer, 1); err != nil {
			return "", err
		}
		return fmt.Sprint("order ", number), nil // which leaves when all three are final
	})
}

// count adds to a counter: a transaction like any other.
func count(ctx context.Context, c *client.Client, key string, n int) (sum int, err error) {
	return client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (int, error) {
		v, _, err := tx.Get(ctx, key)
		if err != nil {
			return 0, err
		}
		had, _ := strconv.Atoi(string(v))
		return had + n, tx.Put(key, strconv.AppendInt(nil, int64(had+n), 10))
	})
}

// TestStoreTask: three transactions of a task take as long as one, in a store of str, and longer in
// one of replicatedcommit; the counters are right in both. A tentative transaction returns before
// it is final, or is rejected.
func TestStoreTask(t *testing.T) {
	for protocol, waits := range map[string]int{"str": 1, "replicatedcommit": 3} {
		t.Run(protocol, func(t *testing.T) {
			onStore(t, protocol, func(ctx context.Context, t *testing.T, dir string, dial storeservice.ClientOptions) {
				c := dialStore(t, dir, dial)
				took := func(f func() error) time.Duration {
					start := time.Now()
					if err := f(); err != nil {
						t.Fatal(err)
					}
					return time.Since(start)
				}
				ordered := func(want string) func() error {
					return func() error {
						got, err := order(ctx, c, "lamp", "ann")
						if err == nil && got != want {
							err = fmt.Errorf("it is %s, want %s", got, want)
						}
						return err
					}
				}
				took(ordered("order 1")) // connections are made
				one := took(func() error {
					_, err := count(ctx, c, "stock/lamp", 10)
					return err
				})
				all := took(ordered("order 2"))
				t.Logf("one transaction takes %v, three of a task %v", one, all)
				if all < one*time.Duration(waits)*9/10 || all > one*time.Duration(waits)*115/100 {
					t.Errorf("one transaction takes %v, three of a task %v, want %d times as long", one, all, waits)
				}
				final := make(chan struct{})
				early := took(func() error {
					err := c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", nil) },
						client.Tentative{Final: func() { close(final) }})
					if protocol != "str" && errors.As(err, new(*client.RejectedError)) {
						close(final)
						return nil
					}
					return err
				})
				if <-final; early > one/2 {
					t.Errorf("a tentative transaction takes %v, another one %v", early, one)
				}
				if n, err := count(ctx, c, "stock/lamp", 0); n != 8 || err != nil {
					t.Errorf("%d lamps are left, %v", n, err)
				}
			})
		})
	}
}

// TestStorePage deposits twice, by that code, in a store of three machines with disks and
// certificates.
func TestStorePage(t *testing.T) {
	onStore(t, "", func(ctx context.Context, t *testing.T, dir string, dial storeservice.ClientOptions) {
		for range 2 {
			if err := deposit(ctx, filepath.Join(dir, storeconfig.ClientFile), dial); err != nil {
				t.Fatal(err)
			}
		}
		c := dialStore(t, dir, dial)
		got, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
			v, _, err := tx.Get(ctx, "account/7")
			return string(v), err
		})
		if err != nil || got != "20" {
			t.Errorf("the account has %q, %v", got, err)
		}
	})
}

// onStore plays on a store of three machines in a bubble, with what a client at the first site
// needs.
func onStore(t *testing.T, protocol string,
	play func(ctx context.Context, t *testing.T, dir string, dial storeservice.ClientOptions),
) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		network := shape.NewNetwork(wan.Uniform(20*time.Millisecond, "a", "b", "c"), 1)
		var sites []storeconfig.Site
		for _, name := range []string{"a", "b", "c"} {
			sites = append(sites, storeconfig.Site{Name: name,
				Machines: []storeconfig.Machine{{Name: name, Peers: name + ":1", Client: name + ":2"}}})
		}
		if _, err := storeconfig.Init(storeconfig.InitOptions{Dir: dir, Cluster: "docs", Shards: 1, Sites: sites,
			RoundTrip: "20ms", Protocol: protocol}); err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			defer startStoreMachine(t, network, dir, s.Name)()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		play(ctx, t, dir, storeservice.ClientOptions{Dial: network.DialContext("a")})
	})
}

// dialStore returns a client of a store, which is closed when the test has ended.
func dialStore(t *testing.T, dir string, o storeservice.ClientOptions) *client.Client {
	t.Helper()
	cfg, err := storeconfig.ReadClient(filepath.Join(dir, storeconfig.ClientFile), "")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := storeservice.Dial(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
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

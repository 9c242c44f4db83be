package storeservice

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
)

// TestAnotherStoreAnswers: a client without certificates whose addresses are another store's by
// now, of the same epoch, gets nothing from it, and is told why.
func TestAnotherStoreAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.alter = func(c *storeconfig.MachineConfig) { c.TLS, c.Insecure = nil, true }
		w.start("a", "b", "c")
		cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
		if err != nil {
			t.Fatal(err)
		}
		cfg.TLS, cfg.Insecure = nil, true
		dial := func(cluster string) (*Client, *client.Client) {
			other := *cfg.Store
			other.Cluster = cluster
			c := *cfg
			c.Store = &other
			conn, err := Dial(&c, ClientOptions{Dial: w.net.DialContext("z")})
			if err != nil {
				t.Fatal(err)
			}
			txns, err := conn.Transactions(client.Spec, 1)
			if err != nil {
				t.Fatal(err)
			}
			return conn, txns
		}
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		own, c := dial("test")
		defer own.Close()
		w.ready(ctx, own)
		if err := put(ctx, c, "k", "v"); err != nil {
			t.Fatal(err)
		}
		foreign, f := dial("täst")
		defer foreign.Close()
		const want = `the client is of the store "täst", and this machine of "test"`
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if v, err := get(short, f, "k"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the other store's client reads %.40q, %v", v, err)
		}
		if err := put(short, f, "k", strings.Repeat("large", 10_000)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the other store's client writes: %v", err)
		}
		if s := foreign.Status(short); s[0].State != Unreachable || !strings.Contains(s[0].Error, want) {
			t.Errorf("the status that it gets is %+v", s[0])
		}
		if v, err := get(ctx, c, "k"); err != nil || v != "v" {
			t.Errorf("k is %.40q, %v", v, err)
		}
	})
}

// TestOtherProtocol: the file of another protocol, or of another store, is no epoch of a store.
func TestOtherProtocol(t *testing.T) {
	sites := []storeconfig.Site{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if err := storeconfig.Place(sites, 1, "127.0.0.1", 7000); err != nil {
		t.Fatal(err)
	}
	cfg, err := storeconfig.Init(storeconfig.InitOptions{Dir: t.TempDir(), Cluster: "shop", Shards: 3, Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	for want, alter := range map[string]func(*storeconfig.Store){
		"": func(s *storeconfig.Store) { s.Protocol = "replicatedcommit" }, // what it is without
		"the file is of a store of the protocol layered, not of replicatedcommit": func(s *storeconfig.Store) {
			s.Protocol = "layered"
		},
		"the file is of another store that is named shop": func(s *storeconfig.Store) { s.ID += "x" },
		"the file is of the store other, not of shop":     func(s *storeconfig.Store) { s.Cluster = "other" },
	} {
		other := *cfg.Store
		alter(&other)
		b, err := other.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseEpoch(b, cfg.Store); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestClientOfAnotherMode: a client whose file says that the store runs another mode or protocol
// than it does, or has another number of shards, is refused, and told why.
func TestClientOfAnotherMode(t *testing.T) {
	for says, change := range map[string]func(*storeconfig.Store){
		"": func(*storeconfig.Store) {},
		`runs "carousel in mode basic", and it runs "carousel in mode fast"`: func(s *storeconfig.Store) { s.Mode = "basic" },
		`runs "layered", and it runs "carousel in mode fast"`: func(s *storeconfig.Store) {
			s.Protocol, s.Mode = "layered", ""
		},
		`has "9" shards, and it has 2`: func(s *storeconfig.Store) { s.Shards = 9 },
	} {
		inStore(t, []string{"a", "b", "c"}, storeconfig.InitOptions{Protocol: "carousel", Mode: "fast"}, func(w *world) {
			w.start("a", "b", "c")
			cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
			if err != nil {
				t.Fatal(err)
			}
			w.client(func(ctx context.Context, conn *Client, _ *client.Client) { w.ready(ctx, conn) })
			reread(t, cfg.Store, func() { change(cfg.Store) })
			conn, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext("z")})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			txns, err := conn.Transactions(client.Spec, 1)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
			defer cancel()
			err = put(ctx, txns, "k", "v")
			want := "the client's file says that the store " + says
			if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("the client's file says %q: the error is %v", says, err)
			}
		})
	}
}

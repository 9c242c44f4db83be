package service

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// leasesVariable says how many leases TestManyLeases grants, kv.MaxLeases at most; without it they
// are few, as ten thousand take 10 s.
const leasesVariable = "FORESAY_LEASES"

// TestManyLeases grants many leases, a key with every tenth, and renews one. The others end soon
// after their time and not before, though the replica that ends leases first is replaced meanwhile.
func TestManyLeases(t *testing.T) {
	many := 500
	if s := os.Getenv(leasesVariable); s != "" {
		var err error
		if many, err = strconv.Atoi(s); err != nil || many < 1 || many > kv.MaxLeases {
			t.Fatalf("%s is %q; want 1 to %d", leasesVariable, s, kv.MaxLeases)
		}
	}
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		c := w.dialed()
		const ttl = time.Minute
		kept, err := c.Grant(ctx, ttl)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := c.PutLeased(ctx, "kept", nil, kept); err != nil {
			w.Fatal(err)
		}
		began := time.Now()
		w.grantMany(ctx, c, many-1, ttl)
		granted := time.Now()
		if _, err := c.Grant(ctx, ttl); many == kv.MaxLeases && err == nil {
			w.Error("one lease more than there can be was granted")
		}
		go func() {
			if err := c.Keep(ctx, kept, ttl); err != nil {
				w.Errorf("Keep: %v", err)
			}
		}()
		w.replaceFirst(ctx, c)
		time.Sleep(time.Until(began.Add(ttl - time.Second)))
		if leases, err := c.Leases(ctx); err != nil || len(leases) < many {
			w.Errorf("before their time there are %d leases, %v", len(leases), err)
		}
		for len(w.leases(ctx, c)) > 1 {
			time.Sleep(100 * time.Millisecond)
		}
		w.Logf("granted in %v, ended %v late", granted.Sub(began), time.Since(granted)-ttl)
		if late := time.Since(granted) - ttl; late > 10*time.Second {
			w.Errorf("the leases ended %v late", late)
		}
		if items, _, err := c.Scan(ctx, "", "", 0); err != nil || len(items) != 1 || string(items[0].Key) != "kept" {
			w.Errorf("the keys that are left: %d, %v", len(items), err)
		}
	})
}

func (w *world) leases(ctx context.Context, c *Client) []kv.Lease {
	leases, err := c.Leases(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return leases
}

// grantMany grants leases, and puts a key with every tenth.
func (w *world) grantMany(ctx context.Context, c *Client, n int, ttl time.Duration) {
	const workers = 100
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for k := i; k < n; k += workers {
				lease, err := c.Grant(ctx, ttl)
				if err == nil && k%10 == 0 {
					_, err = c.PutLeased(ctx, time.Duration(k).String(), nil, lease)
				}
				if err != nil {
					w.Errorf("lease %d: %v", k, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// replaceFirst has replica 4 take the place of replica 1.
func (w *world) replaceFirst(ctx context.Context, c *Client) {
	w.Helper()
	if _, err := InitJoin(w.dir, 4, "d:1"); err != nil {
		w.Fatal(err)
	}
	w.start(4)
	for _, change := range []smr.Change{{Add: smr.Member{ID: 4, Address: "d:1"}}, {Remove: protocol.ID(1)}} {
		if err := c.Change(ctx, change); err != nil {
			w.Fatal(err)
		}
	}
}

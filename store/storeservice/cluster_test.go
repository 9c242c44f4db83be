package storeservice

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/memdir"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// TestClusterChangesWhileItRuns: the sites of a store in one process change under its clients, none
// of whose transactions fails: one leaves by itself, another one is lost.
func TestClusterChangesWhileItRuns(t *testing.T) {
	sites := []wan.Site{"a", "b", "c"}
	c, err := OpenCluster(ClusterOptions{Dir: t.TempDir(), Shards: 1, WAN: wan.Uniform(0, sites...), Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := c.Dial("b")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := &world{T: t}
	w.ready(ctx, conn)
	load, end := context.WithCancel(ctx)
	counted := make(chan int, 1)
	go func() { counted <- w.count(load, conn, "n", true) }()
	if err := c.Replace(ctx, "c", "d"); err != nil {
		t.Error(err)
	}
	w.readyIn(ctx, c)
	if err := c.Stop("a"); err != nil {
		t.Error(err)
	}
	if err := c.Fence(ctx, "a"); err != nil {
		t.Error(err)
	}
	end()
	n := <-counted
	txns, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := get(ctx, txns, "n"); err != nil || v != strconv.Itoa(n) || n < 10 {
		t.Errorf("%d changes of a counter were acknowledged, and it is at %q (%v)", n, v, err)
	}
	want := map[string]bool{"b": true, "d": true}
	for _, p := range c.Places() {
		if p.Running != want[p.Machine] {
			t.Errorf("machine %s runs: %v (%v)", p.Machine, p.Running, p.Err)
		}
	}
}

// readyIn waits until all machines of a cluster take part.
func (w *world) readyIn(ctx context.Context, c *Cluster) {
	conn, err := c.Dial("b")
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	w.ready(ctx, conn)
}

func TestMain(m *testing.M) {
	memdir.Use()
	os.Exit(heap.RunTests(m))
}

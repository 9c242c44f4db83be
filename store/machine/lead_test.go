package machine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/tapir"
	"github.com/foresay/foresay/wan"
)

// TestHandOver: a shard that another site leads from now on serves transactions all the while, and
// what makes no sense is refused.
func TestHandOver(t *testing.T) {
	direct, err := carousel.Protocol().In("direct")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []store.Protocol{carousel.Protocol(), direct, layered.Protocol()} {
		synctest.Test(t, func(t *testing.T) { handOver(t, p) })
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = tapir.Protocol() })
		defer w.close()
		_, err := pb.NewStoreClient(w.connect(0)).HandOver(t.Context(), &pb.HandOverRequest{Site: "b", Epoch: 1})
		if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "has no leaders") {
			t.Errorf("a store without leaders says %v", err)
		}
	})
}

func handOver(t *testing.T, p store.Protocol) {
	w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = p })
	defer w.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	key := freshKeys()(0)
	c := w.client("c", client.Spec)
	count := func() {
		if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			v, _, err := tx.Get(ctx, key)
			if err != nil {
				return err
			}
			return tx.Put(key, append(v, '+'))
		}); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
	count()
	writing, over := make(chan bool), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-writing:
				over <- n
				return
			default:
				count()
			}
		}
	}()
	ask := func(machine int, site string) *pb.HandOverResponse {
		out, err := w.nodes[machine].HandOver(ctx, &pb.HandOverRequest{Shard: 0, Site: site, Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	time.Sleep(time.Second)
	if out := ask(1, "c"); out.GetLeads() || out.GetReason() == "" {
		t.Errorf("%s: a machine that does not lead says %v", p.Name, out)
	}
	for from, to := range []int{1, 2} { // site a leads it at first
		name := string(w.sites[to])
		if out := ask(from, name); !out.GetLeads() || out.GetReason() != "" {
			t.Errorf("%s: machine %d, which leads, is to hand over to %s and says %v", p.Name, from, name, out)
		}
		time.Sleep(2 * time.Second)
		if out := ask(from, name); out.GetLeads() {
			t.Errorf("%s: machine %d still leads", p.Name, from)
		}
		if out := ask(to, name); !out.GetLeads() || out.GetReason() != "" {
			t.Errorf("%s: machine %d, which is to lead, says %v", p.Name, to, out)
		}
	}
	time.Sleep(5 * time.Second)
	close(writing)
	n := <-over
	if got, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
		v, _, err := tx.Get(ctx, key)
		return string(v), err
	}); err != nil || len(got) != n+1 || n < 8 {
		t.Errorf("%s: %d transactions have left %q: %v", p.Name, n+1, got, err)
	}
	for r, want := range map[*pb.HandOverRequest]string{
		{Shard: 9, Site: "a", Epoch: 1}: "no copy of shard 9", {Shard: 0, Site: "x", Epoch: 1}: `no site "x"`,
	} {
		if _, err := w.nodes[0].HandOver(ctx, r); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", p.Name, err, want)
		}
	}
}

// TestLeaderBehindResigns: a machine whose clock is so far behind that it would refuse every write
// has other sites lead what it leads.
func TestLeaderBehindResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdleWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
		w.protocol = carousel.Protocol()
		for i := range w.sites {
			w.start(i, func(cfg *Config) {
				cfg.RoundTrip = 100 * time.Millisecond
				if i == 0 {
					cfg.Clock = func() time.Duration { return time.Duration(time.Now().UnixNano()) - 90*time.Second }
				}
			})
		}
		defer w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		time.Sleep(10 * time.Second)
		c, keys := w.client("c", client.Spec), freshKeys()
		for i := range w.topology.Shards {
			if err := c.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
				return tx.Put(keys(i), []byte("v"))
			}); err != nil {
				t.Errorf("a write is refused: %v", err)
			}
		}
		servers, err := w.nodes[0].Servers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			if s.Leads {
				t.Errorf("it still leads shard %d", s.Shard)
			}
		}
	})
}

package rcgrpc_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/replicatedcommit/rcgrpc"
)

// TestCommitsWhenClosed: a commit that may have left when the connection closes is unknown, by a name to ask for later; others are said to have never left.
func TestCommitsWhenClosed(t *testing.T) {
	verdicts := map[store.Verdict]int{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			conn, err := rcgrpc.Dial(rcgrpc.Config{
				Topology: replicatedcommit.Topology{Epoch: 1, Shards: 1, Sites: []replicatedcommit.TopologySite{{
					Name: "a", Number: 1, Machines: []replicatedcommit.Machine{{Name: "a-1", Peers: "a:1", Client: "a:2"}},
				}}},
				Insecure: true, Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") },
			})
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for i := range 8 {
				wg.Go(func() {
					if i < 4 {
						<-begin
					}
					d := conn.Commit(t.Context(), store.Priority{}, nil, []store.Write{{Key: "k"}})
					mu.Lock()
					defer mu.Unlock()
					v := d.Outcome.Verdict
					verdicts[v]++
					if v != store.Unknown && v != store.Rejected || (v == store.Unknown) == d.Txn.ID.IsZero() {
						t.Errorf("a commit with the name %v is %v: %s", d.Txn.ID, v, d.Outcome.Detail)
					}
				})
			}
			synctest.Wait() // four are on their way
			close(begin)
			conn.Close()
			wg.Wait()
			if d := conn.Commit(t.Context(), store.Priority{}, nil, []store.Write{{Key: "k"}}); d.Outcome.Verdict != store.Rejected {
				t.Errorf("after Close, a commit is %v", d.Outcome.Verdict)
			}
		})
	}
	if verdicts[store.Unknown] < 200 || verdicts[store.Rejected] == 0 {
		t.Errorf("got %v", verdicts)
	}
}

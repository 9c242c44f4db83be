package front

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// agreeing is a site that says yes to everything, and who of several has been asked.
type agreeing struct {
	Server
	listener *bufconn.Listener
}

// TestAbsentSites checks that a client which has just started, or was idle, knows before it writes
// which sites it has no connection to: it asks those that are left one after the other then, as two
// that voted differently could not decide.
func TestAbsentSites(t *testing.T) {
	for _, tc := range []struct {
		name   string
		c      func(ctx context.Context, to *bufconn.Listener) (net.Conn, error)
		before bool // the client has written before c went
		alone  bool // a is asked before b
	}{
		{name: "all are there", c: func(ctx context.Context, to *bufconn.Listener) (net.Conn, error) {
			return to.DialContext(ctx)
		}},
		{name: "c refuses connections", c: func(context.Context, *bufconn.Listener) (net.Conn, error) {
			return nil, errRefused
		}, alone: true},
		{name: "c is cut off", c: func(ctx context.Context, _ *bufconn.Listener) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, alone: true},
		{name: "c goes while the client is idle", c: func(ctx context.Context, to *bufconn.Listener) (net.Conn, error) {
			return to.DialContext(ctx)
		}, before: true, alone: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked []string
				var at []time.Time
				servers, sites := map[string]*grpc.Server{}, map[string]*agreeing{}
				for _, name := range []string{"a", "b", "c"} {
					site := &agreeing{Server: Server{Epoch: 1}, listener: bufconn.Listen(1 << 16)}
					site.Deliver = func(_ context.Context, msg store.Message) error {
						m, ok := msg.(gate.Commit)
						if !ok {
							return nil
						}
						mu.Lock()
						asked, at = append(asked, name), append(at, time.Now())
						mu.Unlock()
						go func() {
							time.Sleep(time.Millisecond)
							site.Receive(gate.CommitDone{Ref: m.Ref, Vote: store.SiteVote{ID: m.Txn.ID, Yes: true}})
						}()
						return nil
					}
					sites[name], servers[name] = site, grpc.NewServer()
					pb.RegisterStoreServer(servers[name], &site.Server)
					go servers[name].Serve(site.listener)
				}
				conn := threeSites(t, func(ctx context.Context, address string) (net.Conn, error) {
					if address == "c:2" {
						return tc.c(ctx, sites["c"].listener)
					}
					return sites[address[:1]].listener.DialContext(ctx)
				})
				commit := func() {
					if o := begin(conn).Commit(t.Context(), write).Outcome; o.Verdict != store.Committed {
						t.Errorf("the outcome is %+v", o)
					}
				}
				if tc.before {
					commit()
					time.Sleep(time.Minute)
					servers["c"].Stop()
					time.Sleep(time.Minute)
					mu.Lock()
					asked, at = nil, nil
					mu.Unlock()
				}
				begun := time.Now()
				commit()
				mu.Lock()
				first, took := slices.Clone(asked), time.Since(begun)
				alone := slices.Equal(first, []string{"a", "b"}) && at[1].Sub(at[0]) >= time.Millisecond
				mu.Unlock()
				if alone != tc.alone || took > 50*time.Millisecond {
					t.Errorf("after %v the commit had been sent to %v", took, first)
				}
				if tc.alone {
					begun = time.Now()
					commit()
					if took := time.Since(begun); took > 5*time.Millisecond {
						t.Errorf("the next one takes %v: it waits for what is known", took)
					}
				}
				conn.Close()
				for _, s := range servers {
					s.Stop()
				}
			})
		})
	}
}

package interop

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// staging is a service whose Put stages its effect.
type staging struct{ *kv }

func (s staging) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	key, value := r.GetKey(), r.GetValue()
	foresay.OnCommit(ctx, func() {
		s.write(key, value, false)
		s.note("committed %s", key)
	})
	foresay.OnRollback(ctx, func() { s.note("rolled back %s", key) })
	return &kvpb.PutResponse{Version: s.read(key).GetVersion() + 1}, nil
}

// A client in another language can speak the protocol.
func (p *python) testClientOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := newKV()
	addr := serveAware(t, s, staging{s}, specgrpc.Stages(kvpb.TestKV_Put_FullMethodName))
	checkPrinted(t, "wire.txt", p.run(t, "wire_client.py", addr))
}

// A server in another language can speak the protocol: it runs calls whose
// callers are speculative, and learns what becomes of them.
func (p *python) testServerOfTheProtocol(t *testing.T) {
	t.Parallel()
	addr, _ := p.serve(t, "wire_server.py")
	server := newPeer(t, addr, true)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	wanted := foresay.SiteConfig{Name: kvpb.TestKV_Get_FullMethodName, ServerPredictions: true}
	tests := []struct {
		name   string
		guess  guess
		sites  []foresay.SiteConfig
		key    string
		follow int // calls that take their key from the one before
		value  string
		log    []string
	}{
		{"right", right, nil, "gate", 1, "two", []string{
			"get gate", "speculative get one", "confirmed one",
		}},
		{"wrong", wrong, nil, "gate", 1, "two", []string{
			"get gate", "speculative get one (a wrong guess)", "aborted one (a wrong guess)", "get one",
		}},
		{"the server's", nil, []foresay.SiteConfig{wanted}, "two", 0, "three", []string{"predicted get two"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server.ask(ctx, t, "!reset gated")
			cc := server.dial(t, specgrpc.WithSites(test.sites...))
			defer cc.Close()
			client := kvpb.NewTestKVClient(cc)
			got, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
				first := ctx
				if test.guess != nil {
					first = foresay.Predicting(ctx, test.guess(proto.Message(&kvpb.GetResponse{Value: "one", Version: 1}))...)
				}
				r, err := client.Get(first, &kvpb.GetRequest{Key: test.key})
				for range test.follow {
					if err == nil {
						r, err = client.Get(ctx, &kvpb.GetRequest{Key: r.GetValue()})
					}
				}
				return r.GetValue(), err
			})
			if err != nil || got != test.value {
				t.Errorf("got %q, %v", got, err)
			}
			var log []string
			soon(func() bool {
				log = append(log, server.lines(ctx, t, "!log")...)
				return len(log) >= len(test.log)
			})
			if diff := cmp.Diff(sorted(test.log), slices.Sorted(slices.Values(log))); diff != "" {
				t.Errorf("the server did something else (-want +got):\n%s", diff)
			}
		})
	}
}

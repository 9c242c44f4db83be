package interop

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"

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
	wanted := control.CallSiteConfig{Name: kvpb.TestKV_Get_FullMethodName, ServerPredictions: true}
	tests := []struct {
		name   string
		guess  guess
		sites  []control.CallSiteConfig
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
		{"the server's", nil, []control.CallSiteConfig{wanted}, "two", 0, "three", []string{"predicted get two"}},
	}
	t.Run("ends", func(t *testing.T) { server.ends(ctx, t) })
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server.ask(ctx, t, "!reset gated")
			cc := server.dial(t, specgrpc.WithCallSites(test.sites...))
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

// ends has speculative streams of a server end in every way.
func (p *peer) ends(ctx context.Context, t *testing.T) {
	id := []byte("0123456789abcdef")
	word := func(call []byte) *specv1.ClientFrame {
		return &specv1.ClientFrame{Frame: &specv1.ClientFrame_Confirm{Confirm: &specv1.Confirm{CallId: call, Attempt: 1}}}
	}
	tests := []struct {
		name string
		end  func(grpc.ClientStream) error
		want codes.Code
	}{
		{"confirm", func(s grpc.ClientStream) error { return s.SendMsg(word(id)) }, codes.OK},
		{"another call's confirm", func(s grpc.ClientStream) error {
			return s.SendMsg(word([]byte("another")))
		}, codes.InvalidArgument},
		{"empty frame", func(s grpc.ClientStream) error { return s.SendMsg(&specv1.ClientFrame{}) }, codes.InvalidArgument},
		{"half-close", func(s grpc.ClientStream) error { return s.CloseSend() }, codes.Canceled},
		{"silence", func(grpc.ClientStream) error { return nil }, codes.Aborted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				kvpb.TestKV_Get_FullMethodName+".spec")
			if err != nil {
				t.Fatal(err)
			}
			payload, err := proto.Marshal(&kvpb.GetRequest{Key: "one"})
			if err != nil {
				t.Fatal(err)
			}
			request := &specv1.Request{Payload: payload, CallId: id, Attempt: 1, Depth: 1, LeaseMs: 200,
				Caller: specv1.CallerState_CALLER_STATE_SPECULATIVE}
			if err := s.SendMsg(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Request{Request: request}}); err != nil {
				t.Fatal(err)
			}
			frame := new(specv1.ServerFrame)
			for frame.GetFinal() == nil {
				if err := s.RecvMsg(frame); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.end(s); err != nil {
				t.Fatal(err)
			}
			err = s.RecvMsg(frame)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if status.Code(err) != test.want {
				t.Errorf("the stream ended with %v, want %v", err, test.want)
			}
		})
	}
}

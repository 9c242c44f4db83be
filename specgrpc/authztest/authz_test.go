// Package authztest tests package specgrpc against grpc's authorisation policies.
// It is a module of its own, so that what these need stays out of the modules of
// those who import Foresay.
package authztest

import (
	"context"
	"testing"
	"testing/synctest"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/authz"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

const (
	get = kvpb.TestKV_Get_FullMethodName
	put = kvpb.TestKV_Put_FullMethodName

	onGet = `{"name": "get", "request": {"paths": ["` + get + `"]}}`
)

// A rule by path holds for speculative calls as for plain ones, whether it denies
// the method or allows it and no other.
func TestRulesByPath(t *testing.T) {
	for name, tt := range map[string]struct {
		policy   string
		get, put codes.Code
	}{
		"denied": {`{"name": "p", "deny_rules": [` + onGet + `], "allow_rules": [{"name": "all"}]}`, codes.PermissionDenied,
			codes.OK},
		"allowed": {`{"name": "p", "allow_rules": [` + onGet + `]}`, codes.OK, codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cc := serve(t, tt.policy)
				for method, want := range map[string]codes.Code{get: tt.get, put: tt.put} {
					if got := speculative(t, cc, method); got != want {
						t.Errorf("speculative %s: got %v, want %v", method, got, want)
					}
				}
				_, err := kvpb.NewTestKVClient(cc).Get(t.Context(), &kvpb.GetRequest{})
				if got := status.Code(err); got != tt.get {
					t.Errorf("plain Get: got %v, want %v", got, tt.get)
				}
			})
		})
	}
}

// serve connects to a server with a policy.
func serve(t *testing.T, policy string) *grpc.ClientConn {
	p, err := authz.NewStatic(policy)
	if err != nil {
		t.Fatal(err)
	}
	net := shape.NewNetwork(wan.Uniform(0, "client", "server"), 1)
	lis, err := net.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	s := specgrpc.NewServer(grpc.ChainUnaryInterceptor(p.UnaryInterceptor),
		grpc.ChainStreamInterceptor(p.StreamInterceptor),
		specgrpc.SideEffectFree(put), grpc.WaitForHandlers(true))
	kvpb.RegisterTestKVServer(s, kv{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	cc, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), grpc.WithContextDialer(net.DialContext("client")),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cc.Close()
		s.Stop()
		<-served
		net.Close()
	})
	return cc
}

type kv struct {
	kvpb.UnimplementedTestKVServer
}

func (kv) Get(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return &kvpb.GetResponse{}, nil
}

func (kv) Put(context.Context, *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	return &kvpb.PutResponse{}, nil
}

// speculative makes a call over the method's speculative stream and returns the
// code of its result. The requests of the methods used here may be empty.
func speculative(t *testing.T, cc *grpc.ClientConn, method string) codes.Code {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method+".spec")
	if err != nil {
		t.Fatal(err)
	}
	request := &specv1.Request{CallId: []byte("0123456789abcdef"), Attempt: 1, Depth: 1,
		Caller: specv1.CallerState_CALLER_STATE_SPECULATIVE}
	if err := s.SendMsg(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Request{Request: request}}); err != nil {
		t.Fatal(err)
	}
	frame := new(specv1.ServerFrame)
	if err := s.RecvMsg(frame); err != nil {
		t.Fatal(err)
	}
	st := new(rpcstatus.Status)
	if err := proto.Unmarshal(frame.GetFinal().GetStatus(), st); err != nil {
		t.Fatal(err)
	}
	if frame.GetFinal() == nil {
		t.Fatalf("got %v, want Final", frame)
	}
	return codes.Code(st.GetCode())
}

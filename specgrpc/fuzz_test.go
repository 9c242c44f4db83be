package specgrpc

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// frames splits a fuzzer's bytes into messages, each with its length before it.
func frames(data []byte) [][]byte {
	var out [][]byte
	for len(data) > 0 && len(out) < 100 {
		b, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return append(out, data)
		}
		out, data = append(out, b), data[n:]
	}
	return out
}

func join(frames ...proto.Message) []byte {
	var out []byte
	for _, f := range frames {
		b, _ := proto.Marshal(f)
		out = protowire.AppendBytes(out, b)
	}
	return out
}

func fuzzRequest(caller specv1.CallerState, depth uint32) *specv1.ClientFrame {
	payload, _ := proto.Marshal(&kvpb.PutRequest{Key: "k"})
	return &specv1.ClientFrame{Frame: &specv1.ClientFrame_Request{Request: &specv1.Request{
		Payload: payload, CallId: make([]byte, 16), Attempt: 1, Caller: caller, Depth: depth, LeaseMs: 1000,
	}}}
}

// clientFrames are a client's bytes as a server's stream.
type clientFrames struct {
	grpc.ServerStream
	ctx  context.Context
	in   [][]byte
	sent []*specv1.ServerFrame
}

func (s *clientFrames) Context() context.Context { return s.ctx }
func (s *clientFrames) SetTrailer(metadata.MD)   {}
func (s *clientFrames) SendMsg(m any) error {
	s.sent = append(s.sent, proto.Clone(m.(*specv1.ServerFrame)).(*specv1.ServerFrame))
	return nil
}
func (s *clientFrames) RecvMsg(m any) error {
	if len(s.in) == 0 {
		return io.EOF
	}
	b := s.in[0]
	s.in = s.in[1:]
	return proto.Unmarshal(b, m.(proto.Message))
}

type fuzzKV struct {
	kvpb.UnimplementedTestKVServer
}

func (fuzzKV) Put(context.Context, *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	return &kvpb.PutResponse{Version: 1}, nil
}

// FuzzServer has a server read arbitrary frames: it must not panic or hang, and
// must end a call with OK only if it was confirmed, or refused.
func FuzzServer(f *testing.F) {
	id := attemptID{number: 1}
	speculative := fuzzRequest(specv1.CallerState_CALLER_STATE_SPECULATIVE, 1)
	f.Add(join(speculative, id.confirm()))
	f.Add(join(speculative, id.abort(), id.confirm()))
	f.Add(join(speculative, speculative))
	f.Add(join(speculative, &specv1.ClientFrame{}))
	f.Add(join(fuzzRequest(specv1.CallerState_CALLER_STATE_CONFIRMED, 0)))
	f.Add(join(fuzzRequest(specv1.CallerState_CALLER_STATE_SPECULATIVE, 1<<31), id.confirm()))
	f.Add([]byte("\x03\x0a\x01"))
	var method *serverMethod
	r := Registrar(registrarFunc(func(*grpc.ServiceDesc, any) {}), Stages(kvpb.TestKV_Put_FullMethodName))
	r.guards.Store(new(guards)) // there is no grpc.Server to ask
	for _, md := range kvpb.TestKV_ServiceDesc.Methods {
		if md.MethodName == "Put" {
			method = &serverMethod{name: kvpb.TestKV_Put_FullMethodName, desc: md, admitted: true, staged: true}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &clientFrames{ctx: ctx, in: frames(data)}
		err := r.serve(method, fuzzKV{}, s)
		if n := r.HalfOpen(); n != 0 {
			t.Fatalf("%d half-open calls left", n)
		}
		if err == nil && !entitled(frames(data)) && (len(s.sent) != 1 || s.sent[0].GetRefused() == nil) {
			t.Fatalf("ended with OK, having sent %v", s.sent)
		}
	})
}

type registrarFunc func(*grpc.ServiceDesc, any)

func (f registrarFunc) RegisterService(d *grpc.ServiceDesc, impl any) { f(d, impl) }

// entitled says, in its own way, whether a client's frames begin with a valid
// request that is confirmed from the start or by the next frame.
func entitled(in [][]byte) bool {
	first, second := new(specv1.ClientFrame), new(specv1.ClientFrame)
	if len(in) == 0 || proto.Unmarshal(in[0], first) != nil || first.GetRequest() == nil {
		return false
	}
	r := first.GetRequest()
	if r.GetCaller() == specv1.CallerState_CALLER_STATE_CONFIRMED {
		return true
	}
	if len(in) < 2 || proto.Unmarshal(in[1], second) != nil || second.GetConfirm() == nil {
		return false
	}
	return string(second.GetConfirm().GetCallId()) == string(r.GetCallId()) &&
		second.GetConfirm().GetAttempt() == r.GetAttempt()
}

// FuzzClient has a client judge arbitrary frames: whatever passes keeps to the
// order and refers to what was sent.
func FuzzClient(f *testing.F) {
	prediction := &specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{
		Prediction: &specv1.Prediction{Payload: []byte("p")}}}
	final := &specv1.ServerFrame{Frame: &specv1.ServerFrame_Final{
		Final: &specv1.Final{Result: &specv1.Final_Prediction{}}}}
	f.Add(join(prediction, final))
	f.Add(join(final, prediction))
	f.Add(join(prediction, final, final))
	f.Add(join(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Refused{Refused: &specv1.Refused{}}}, final))
	f.Add(join(&specv1.ServerFrame{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answers
		kinds := ""
		predictions := uint32(0)
		for _, b := range frames(data) {
			frame := new(specv1.ServerFrame)
			if proto.Unmarshal(b, frame) != nil || a.check(frame) != nil {
				break
			}
			switch x := frame.GetFrame().(type) {
			case *specv1.ServerFrame_Refused:
				kinds += "r"
			case *specv1.ServerFrame_Prediction:
				kinds += "p"
				predictions++
			case *specv1.ServerFrame_Final:
				kinds += "f"
				if ref, ok := x.Final.GetResult().(*specv1.Final_Prediction); ok && ref.Prediction >= predictions {
					t.Fatalf("a reference to prediction %d of %d passed", ref.Prediction, predictions)
				}
				if x.Final.GetResult() == nil {
					t.Fatal("a Final without result passed")
				}
			default:
				t.Fatal("an empty frame passed")
			}
		}
		for i, k := range kinds {
			if k == 'r' && len(kinds) > 1 || k == 'f' && i != len(kinds)-1 {
				t.Fatalf("the order %s passed", kinds)
			}
		}
	})
}

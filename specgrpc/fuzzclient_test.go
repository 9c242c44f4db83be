package specgrpc_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// rawCodec carries bytes that may be anything.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "raw" }

var _ encoding.Codec = rawCodec{}

// FuzzClientStream has a server send arbitrary bytes on a speculative stream:
// the task ends, with the actual result or with what the server gave as such,
// and leaves nothing behind.
func FuzzClientStream(f *testing.F) {
	seed := func(frames ...*specv1.ServerFrame) {
		var b []byte
		for _, frame := range frames {
			m, _ := proto.Marshal(frame)
			b = protowire.AppendBytes(b, m)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	payload, _ := proto.Marshal(value("k"))
	prediction := &specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{
		Prediction: &specv1.Prediction{Payload: payload}}}
	final := &specv1.ServerFrame{Frame: &specv1.ServerFrame_Final{
		Final: &specv1.Final{Result: &specv1.Final_Prediction{}}}}
	seed(prediction, final)
	seed(final)
	seed(prediction, final, prediction)
	seed(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Refused{}})
	seed(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Final{
		Final: &specv1.Final{Result: &specv1.Final_Payload{Payload: payload}, Tentative: true}}})
	seed(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Final{
		Final: &specv1.Final{Result: &specv1.Final_Status{Status: []byte("\b\x05")}}}})
	f.Add([]byte("\x01\xff"), false)
	f.Fuzz(func(t *testing.T, data []byte, right bool) {
		inWorld(t, func(w *world) { fuzzClient(w, data, right) })
	})
}

func fuzzClient(w *world, data []byte, right bool) {
	_, addr := w.serve("a", func(*grpc.Server) {}, grpc.ForceServerCodec(rawCodec{}), //nolint:staticcheck // any bytes
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			var in []byte
			if err := s.RecvMsg(&in); err != nil {
				return err
			}
			if method, _ := grpc.MethodFromServerStream(s); !strings.HasSuffix(method, ".spec") {
				out, _ := proto.Marshal(value("plain"))
				return s.SendMsg(&out)
			}
			for len(data) > 0 {
				b, n := protowire.ConsumeBytes(data)
				if n < 0 {
					b, n = data, len(data)
				}
				data = data[n:]
				if err := s.SendMsg(&b); err != nil {
					return err
				}
			}
			_ = s.RecvMsg(&in)
			return nil
		}))
	_, _, slowAddr := w.kv("b", newSlowServer())
	cc, fromB := w.dial(addr), w.dial(slowAddr)
	prediction := value("slow")
	if !right {
		prediction = value("wrong")
	}
	got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
		if _, err := guessed(ctx, kvpb.NewTestKVClient(fromB), "slow", prediction); err != nil {
			return "", err
		}
		got, err := kvpb.NewTestKVClient(cc).Get(ctx, &kvpb.GetRequest{Key: "k"})
		return got.GetValue(), err
	})
	if refused := cc.CallSite(getMethod).Stats().Refused > 0; refused && (err != nil || got != "value of plain") {
		w.Errorf("got %q, %v from the plain call", got, err)
	}
	w.quiet(cc)
}

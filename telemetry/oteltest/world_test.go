// Package oteltest tests package telemetry against OpenTelemetry's SDK, otelgrpc
// and the Prometheus exporter. It is a module of its own, so that these stay out
// of the modules of those who import Foresay.
package oteltest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/telemetry"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// rtt is the round trip between any two sites of a world.
const rtt = 10 * time.Millisecond

// world is a client and servers in a bubble of virtual time, all of which make
// spans for one recorder.
type world struct {
	*testing.T
	net      *shape.Network
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
	control  *control.Control
	start    time.Time
	neverEnd int // spans that gRPC ends for nobody
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, net: shape.NewNetwork(wan.Uniform(rtt, "client", "a", "b"), 1), spans: tracetest.NewSpanRecorder()}
		t.Cleanup(func() { w.net.Close() })
		w.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
		w.control = w.newControl()
		f(w)
	})
}

func (w *world) newControl() *control.Control {
	w.Helper()
	c, err := control.New(control.Config{Tracer: telemetry.NewTracer(w.provider), Recent: -1})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) otelOptions() []otelgrpc.Option {
	return []otelgrpc.Option{otelgrpc.WithTracerProvider(w.provider), otelgrpc.WithPropagators(propagation.TraceContext{})}
}

// serve starts a server with otelgrpc's handler.
func (w *world) serve(site wan.Site, impl kvpb.TestKVServer, opts ...grpc.ServerOption) string {
	w.Helper()
	l, err := w.net.Listen(site)
	if err != nil {
		w.Fatal(err)
	}
	opts = append(opts, grpc.WaitForHandlers(true),
		grpc.StatsHandler(telemetry.ServerHandler(otelgrpc.NewServerHandler(w.otelOptions()...))))
	var s interface {
		grpc.ServiceRegistrar
		Serve(net.Listener) error
		Stop()
	} = specgrpc.NewServer(opts...)
	if u, ok := impl.(unaware); ok {
		s, impl = grpc.NewServer(opts...), u.TestKVServer
	}
	kvpb.RegisterTestKVServer(s, impl)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	w.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// dial connects the client to a server, with otelgrpc's handler.
func (w *world) dial(addr string, opts ...grpc.DialOption) kvpb.TestKVClient {
	w.Helper()
	return kvpb.NewTestKVClient(w.dialConn(addr, opts...))
}

// dialConn returns the connection, once it is made.
func (w *world) dialConn(addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	w.Helper()
	handler := telemetry.ClientHandler(otelgrpc.NewClientHandler(w.otelOptions()...))
	return w.dialWith(addr, append(opts, grpc.WithStatsHandler(handler))...)
}

// dialWith connects with nothing but these options.
func (w *world) dialWith(addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	w.Helper()
	opts = append(append(w.bare(), specgrpc.WithControl(w.control), specgrpc.WithMode(control.ModeOn)), opts...)
	cc, err := specgrpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cc.Close() })
	if _, err := get(w.Context(), kvpb.NewTestKVClient(cc), "connect"); err != nil {
		w.Fatal(err)
	}
	return cc
}

// bare is what a client needs at least.
func (w *world) bare() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(w.net.DialContext("client")),
		grpc.WithTransportCredentials(insecure.NewCredentials())}
}

// begin forgets the spans so far, and starts the caller's span and the clock.
func (w *world) begin() (context.Context, trace.Span) {
	synctest.Wait()
	w.spans.Reset()
	w.start = time.Now()
	return w.provider.Tracer("test").Start(w.control.Context(w.Context()), "caller")
}

// tree waits until all is quiet and returns the spans as text: each below its
// parent, with its times in milliseconds, what it is linked to, and its attributes.
func (w *world) tree() string {
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if n := len(w.spans.Started()) - len(w.spans.Ended()); n != w.neverEnd {
		w.Errorf("%d spans have not ended, want %d", n, w.neverEnd)
	}
	spans := w.spans.Ended()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int {
		if c := a.StartTime().Compare(b.StartTime()); c != 0 {
			return c
		}
		return strings.Compare(line(w, a, nil), line(w, b, nil))
	})
	labels := make(map[trace.SpanID]string)
	for _, s := range spans {
		labels[s.SpanContext().SpanID()] = s.Name() + number(s, "call") + number(s, "run")
	}
	for _, s := range spans { // calls, by the branch in which they are
		if in := labels[s.Parent().SpanID()]; strings.HasPrefix(in, "branch") {
			labels[s.SpanContext().SpanID()] += " in " + in
		}
	}
	var b strings.Builder
	b.WriteByte('\n')
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent().SpanID() == parent {
				b.WriteString(indent + line(w, s, labels) + "\n")
				write(s.SpanContext().SpanID(), indent+"  ")
			}
		}
	}
	write(trace.SpanID{}, "")
	return strings.ReplaceAll(b.String(), "foresay.testkv.v1.", "")
}

// number returns an attribute's value with its name, if there is one.
func number(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == "foresay."+key && s.SpanKind() == trace.SpanKindInternal {
			return " " + key + " " + kv.Value.String()
		}
	}
	return ""
}

func (w *world) ms(at time.Time) string {
	return fmt.Sprintf("%g", float64(at.Sub(w.start).Microseconds())/1000)
}

func line(w *world, s sdktrace.ReadOnlySpan, labels map[trace.SpanID]string) string {
	out := fmt.Sprintf("%s %s-%s", s.Name(), w.ms(s.StartTime()), w.ms(s.EndTime()))
	if s.SpanKind() != trace.SpanKindInternal {
		out += " " + s.SpanKind().String()
	}
	if s.Status().Code != codes.Unset {
		out += " " + s.Status().Code.String()
	}
	for _, l := range s.Links() {
		kind := ""
		for _, kv := range l.Attributes {
			kind = kv.Value.String()
		}
		out += fmt.Sprintf(" ->%s(%s)", kind, labels[l.SpanContext.SpanID()])
	}
	attrs := slices.Clone(s.Attributes())
	slices.SortFunc(attrs, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	for _, kv := range attrs {
		if kv.Key == "rpc.response.status_code" && kv.Value.AsString() != "OK" {
			out += " " + kv.Value.AsString()
		}
		if name, ok := strings.CutPrefix(string(kv.Key), "foresay."); ok {
			out += fmt.Sprintf(" %s=%s", name, kv.Value.String())
		}
	}
	return out
}

// unaware is served without Foresay.
type unaware struct{ kvpb.TestKVServer }

// kv answers with the key's value.
type kv struct {
	kvpb.UnimplementedTestKVServer
	slow string // is answered a round trip later
}

func (s kv) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if r.GetKey() == s.slow {
		select {
		case <-time.After(rtt):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return value(r.GetKey()), nil
}

func (kv) Put(context.Context, *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	return &kvpb.PutResponse{Version: 1}, nil
}

func (kv) Append(context.Context, *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	return &kvpb.AppendResponse{Version: 1}, nil
}

func value(key string) *kvpb.GetResponse { return &kvpb.GetResponse{Value: "value of " + key} }

// get calls Get, with predictions.
func get(ctx context.Context, c kvpb.TestKVClient, key string, predictions ...any) (string, error) {
	if len(predictions) > 0 {
		ctx = foresay.Predicting(ctx, predictions...)
	}
	r, err := c.Get(ctx, &kvpb.GetRequest{Key: key})
	return r.GetValue(), err
}

func wantTree(w *world, want string) {
	w.Helper()
	if got := w.tree(); got != want {
		w.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

package specgrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// grpcOption is something that gRPC can be told, and what it is to mean.
type grpcOption struct {
	name  string
	dial  []grpc.DialOption
	call  []grpc.CallOption
	looks bool // the calls look at the transport
	serve []grpc.ServerOption
	asks  int // bytes of the requests' keys
	bytes int // of the responses' values
	waits bool
	code  codes.Code
}

func grpcOptions() []grpcOption {
	def := grpc.WithDefaultCallOptions
	reversed := grpc.ForceCodecV2(encoding.GetCodecV2("reversed"))
	return []grpcOption{
		{name: "nothing"},
		{name: "WaitForReady", call: []grpc.CallOption{grpc.WaitForReady(true)}},
		{name: "StaticMethod", call: []grpc.CallOption{grpc.StaticMethod()}},
		{name: "UseCompressor", call: []grpc.CallOption{grpc.UseCompressor(gzip.Name)}, asks: 5000, bytes: 5000},
		{name: "UseCompressor by default", dial: []grpc.DialOption{def(grpc.UseCompressor(gzip.Name))}, asks: 5000},
		{name: "UseCompressor, unknown", call: []grpc.CallOption{grpc.UseCompressor("nobody's")}, code: codes.Internal},
		{name: "WithCompressor", dial: []grpc.DialOption{withOwnCompressor()}, serve: []grpc.ServerOption{ownDecompressor()},
			asks: 5000},
		{name: "WithCompressor, unknown to the server", dial: []grpc.DialOption{withOwnCompressor()},
			code: codes.Unimplemented},
		{name: "WithDecompressor", dial: []grpc.DialOption{withOwnDecompressor()},
			serve: []grpc.ServerOption{ownCompression()}, bytes: 5000},
		{name: "AcceptCompressors", call: []grpc.CallOption{experimental.AcceptCompressors(gzip.Name)}},
		{name: "CallAuthority", call: []grpc.CallOption{grpc.CallAuthority("shop.example")}},
		{name: "WithAuthority", dial: []grpc.DialOption{grpc.WithAuthority("shop.example")}},
		{name: "WithUserAgent", dial: []grpc.DialOption{grpc.WithUserAgent("shop/1")}},
		{name: "PerRPCCredentials", call: []grpc.CallOption{grpc.PerRPCCredentials(userToken("alice"))}},
		{name: "PerRPCCredentials for the method", call: []grpc.CallOption{grpc.PerRPCCredentials(methodToken{})}},
		{name: "WithPerRPCCredentials", dial: []grpc.DialOption{grpc.WithPerRPCCredentials(userToken("alice"))}},
		{name: "credentials that fail", call: []grpc.CallOption{grpc.PerRPCCredentials(noToken{})}, code: codes.Internal},
		{name: "Header, Trailer, Peer, OnFinish", looks: true, waits: true},
		{name: "OnFinish by default", dial: []grpc.DialOption{def(grpc.OnFinish(func(error) {}))}},
		{name: "CallContentSubtype proto", call: []grpc.CallOption{grpc.CallContentSubtype("proto")}},
		{name: "CallContentSubtype", call: []grpc.CallOption{grpc.CallContentSubtype("reversed")}, waits: true},
		{name: "ForceCodec", call: []grpc.CallOption{grpc.ForceCodec(reversedCodec{})}, waits: true},
		{name: "ForceCodecV2", call: []grpc.CallOption{reversed}, waits: true},
		{name: "ForceCodecV2 by default", dial: []grpc.DialOption{def(reversed)}, waits: true},
		{name: "ForceServerCodecV2", call: []grpc.CallOption{reversed},
			serve: []grpc.ServerOption{grpc.ForceServerCodecV2(encoding.GetCodecV2("reversed"))}, waits: true},
		{name: "ForceServerCodec of some messages only", serve: []grpc.ServerOption{grpc.ForceServerCodec(ownMessages{})}},
		{name: "MaxCallRecvMsgSize, fits", call: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, bytes: 980},
		{name: "MaxCallRecvMsgSize", call: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, bytes: 1001,
			code: codes.ResourceExhausted},
		{name: "MaxCallRecvMsgSize by default", dial: []grpc.DialOption{def(grpc.MaxCallRecvMsgSize(1000))}, bytes: 1001,
			code: codes.ResourceExhausted},
		{name: "WithMaxMsgSize", dial: []grpc.DialOption{withMaxMsgSize(1000)}, bytes: 1001, code: codes.ResourceExhausted},
		{name: "WithCodec", dial: []grpc.DialOption{withCodec()}, serve: []grpc.ServerOption{customCodec()}, waits: true},
		{name: "MaxCallRecvMsgSize, more than usual", call: []grpc.CallOption{grpc.MaxCallRecvMsgSize(9 << 20)},
			bytes: 6 << 20},
		{name: "MaxCallSendMsgSize, fits", call: []grpc.CallOption{grpc.MaxCallSendMsgSize(1000)}, asks: 980},
		{name: "MaxCallSendMsgSize", call: []grpc.CallOption{grpc.MaxCallSendMsgSize(1000)}, asks: 1001,
			code: codes.ResourceExhausted},
		{name: "MaxRecvMsgSize of the server, fits", serve: []grpc.ServerOption{grpc.MaxRecvMsgSize(1000)}, asks: 980},
		{name: "MaxRecvMsgSize of the server", serve: []grpc.ServerOption{grpc.MaxRecvMsgSize(1000)}, asks: 1001,
			code: codes.ResourceExhausted},
		{name: "MaxSendMsgSize of the server, fits", serve: []grpc.ServerOption{grpc.MaxSendMsgSize(1000)}, bytes: 980},
		{name: "MaxSendMsgSize of the server", serve: []grpc.ServerOption{grpc.MaxSendMsgSize(1000)}, bytes: 1001,
			code: codes.ResourceExhausted},
		{name: "WithStatsHandler", dial: []grpc.DialOption{grpc.WithStatsHandler(addsUser{})}},
		{name: "MaxRetryRPCBufferSize", call: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(1)}},
		{name: "WithMaxCallAttempts", dial: []grpc.DialOption{grpc.WithMaxCallAttempts(2)}},
	}
}

// withOwnCompressor has a connection use a compressor that is not registered.
func withOwnCompressor() grpc.DialOption {
	//lint:ignore SA1019 the only one that a server may not know
	return grpc.WithCompressor(ownCompressor{grpc.NewGZIPCompressor()})
}

func ownDecompressor() grpc.ServerOption {
	//lint:ignore SA1019 as above
	return grpc.RPCDecompressor(ownDecompression{grpc.NewGZIPDecompressor()})
}

// The deprecated options that a program may still have.
func withOwnDecompressor() grpc.DialOption {
	//lint:ignore SA1019 as above
	return grpc.WithDecompressor(ownDecompression{grpc.NewGZIPDecompressor()})
}

func ownCompression() grpc.ServerOption {
	//lint:ignore SA1019 as above
	return grpc.RPCCompressor(ownCompressor{grpc.NewGZIPCompressor()})
}

func withMaxMsgSize(bytes int) grpc.DialOption {
	//lint:ignore SA1019 as above
	return grpc.WithMaxMsgSize(bytes)
}

func withCodec() grpc.DialOption {
	//lint:ignore SA1019 as above
	return grpc.WithCodec(reversedNamed{reversedCodec{}})
}

func customCodec() grpc.ServerOption {
	//lint:ignore SA1019 as above
	return grpc.CustomCodec(reversedNamed{reversedCodec{}})
}

// reversedNamed is a codec as gRPC had them first.
type reversedNamed struct{ reversedCodec }

func (reversedNamed) String() string { return "reversed" }

type ownCompressor struct{ grpc.Compressor }

func (ownCompressor) Type() string { return "own" }

type ownDecompression struct{ grpc.Decompressor }

func (ownDecompression) Type() string { return "own" }

// noToken are credentials that cannot be had.
type noToken struct{}

func (noToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, errors.New("no token")
}
func (noToken) RequireTransportSecurity() bool { return false }

// reversedCodec sends messages backwards.
type reversedCodec struct{}

func (reversedCodec) Name() string { return "reversed" }

func (reversedCodec) Marshal(v any) ([]byte, error) {
	b, err := proto.Marshal(v.(proto.Message))
	slices.Reverse(b)
	return b, err
}

func (reversedCodec) Unmarshal(data []byte, v any) error {
	data = bytes.Clone(data)
	slices.Reverse(data)
	return proto.Unmarshal(data, v.(proto.Message))
}

// ownMessages is a codec that knows the messages of the service alone.
type ownMessages struct{}

func (ownMessages) Name() string { return "proto" }

func (ownMessages) Marshal(v any) ([]byte, error) {
	if !strings.Contains(fmt.Sprintf("%T", v), "testkv") {
		return nil, fmt.Errorf("%T is no message of the service", v)
	}
	return proto.Marshal(v.(proto.Message))
}

func (ownMessages) Unmarshal(data []byte, v any) error {
	if !strings.Contains(fmt.Sprintf("%T", v), "testkv") {
		return fmt.Errorf("%T is no message of the service", v)
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// addsUser is a stats handler of a client that sends metadata, as those that trace do.
type addsUser struct{ countsNothing }

func (addsUser) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-user", "stats")
}

type countsNothing struct{}

func (countsNothing) HandleRPC(context.Context, stats.RPCStats)                         {}
func (countsNothing) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (countsNothing) HandleConn(context.Context, stats.ConnStats)                       {}

// transportSeen is what a server's stats handler sees of a call, for its handler.
type transportSeen struct {
	countsNothing
	mu      sync.Mutex
	streams int // speculative ones
}

type inHeaderKey struct{}

func (s *transportSeen) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(info.FullMethodName, ".spec") {
		s.streams++
	}
	return context.WithValue(ctx, inHeaderKey{}, new(stats.InHeader))
}

func (s *transportSeen) HandleRPC(ctx context.Context, r stats.RPCStats) {
	if in, ok := r.(*stats.InHeader); ok {
		*ctx.Value(inHeaderKey{}).(*stats.InHeader) = *in
	}
}

func (s *transportSeen) speculative() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

// told is what a handler sees of how it is called.
func told(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	in, _ := ctx.Value(inHeaderKey{}).(*stats.InHeader)
	return fmt.Sprintf("authority %v, agent %v, type %v, user %v, compression %q, peer %v",
		md[":authority"], md["user-agent"], md["content-type"], md["x-user"], in.Compression, in.RemoteAddr.Network())
}

// server serves the calls, by a server that speaks of guesses or one that does not.
func (k grpcOption) server(w *world, guesses bool) (*kvServer, *transportSeen, string) {
	s, seen := &kvServer{}, &transportSeen{}
	meet := func(ctx context.Context, key string) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("h", key[:2]))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("t", key[:2]))
	}
	s.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		key := r.GetKey()
		if key == "first" {
			return value("first"), pause(ctx, 50*time.Millisecond)
		}
		meet(ctx, key)
		s.note("told %.40s: %s", key, told(ctx))
		return &kvpb.GetResponse{Value: key[:4] + strings.Repeat("v", k.bytes)}, nil
	}
	s.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if err := foresay.Barrier(ctx); err != nil {
			return nil, err
		}
		meet(ctx, r.GetKey())
		s.note("told of a write %.40s: %s", r.GetKey(), told(ctx))
		return &kvpb.PutResponse{Version: 7}, nil
	}
	opts := append([]grpc.ServerOption{grpc.StatsHandler(seen), specgrpc.Stages(putMethod)}, k.serve...)
	var addr string
	if guesses {
		_, addr = w.server("a", s, opts...)
	} else {
		_, addr = w.serve("a", func(g *grpc.Server) { kvpb.RegisterTestKVServer(g, s) }, opts...)
	}
	return s, seen, addr
}

// look are options that look at the transport, and what they saw.
type look struct {
	header, trailer metadata.MD
	from            peer.Peer
	finished        []string
}

func (l *look) options(k grpcOption) []grpc.CallOption {
	if !k.looks {
		return k.call
	}
	return append([]grpc.CallOption{grpc.Header(&l.header), grpc.Trailer(&l.trailer), grpc.Peer(&l.from),
		grpc.OnFinish(func(err error) { l.finished = append(l.finished, status.Code(err).String()) })}, k.call...)
}

// result says what came of a call.
func (l *look) result(m proto.Message, err error) string {
	text := fmt.Sprint(m)
	return fmt.Sprintf("%v (%d bytes %.20s), header %v, trailer %v, peer %v, finished %v",
		status.Convert(err), len(text), text, l.header["h"], l.trailer["t"], l.from.Addr != nil, l.finished)
}

// call makes a call, and then three that may be made on its guess: one that depends
// on it, one that does not, and a write.
func (k grpcOption) calls(ctx context.Context, first, c kvpb.TestKVClient, guess string) (results string, err error) {
	f, err := first.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: guess}), &kvpb.GetRequest{Key: "first"})
	if err != nil {
		return "", err
	}
	var all []string
	for _, key := range []string{"same", f.GetValue()} {
		var l look
		r, err := c.Get(ctx, &kvpb.GetRequest{Key: key + strings.Repeat("k", k.asks)}, l.options(k)...)
		all = append(all, l.result(r, err))
	}
	var l look
	r, err := c.Put(ctx, &kvpb.PutRequest{Key: f.GetValue() + strings.Repeat("k", k.asks)}, l.options(k)...)
	return strings.Join(append(all, l.result(r, err)), "\n"), nil
}

// kept are the notes of what was not undone, each once: those of a wrong guess are not.
func kept(s *kvServer, addr string) (out []string) {
	for _, n := range notesWith(s, "told") {
		if !strings.Contains(n, "wrong") {
			out = append(out, strings.ReplaceAll(n, addr, "the server's address"))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestGRPCOptions: what gRPC is told by options means the same for calls that are made
// on a guess, right or wrong, to servers that speak of guesses and to those that do not:
// the code that calls has the same results, and the server sees the same calls.
func TestGRPCOptions(t *testing.T) {
	encoding.RegisterCodec(reversedCodec{})
	cases := 0
	for _, k := range grpcOptions() {
		for _, guesses := range []bool{true, false} {
			for _, guess := range []string{value("first").GetValue(), "wrong"} {
				if cases++; cases%seed.Every(3) != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/guesses %v/%s", k.name, guesses, guess), func(t *testing.T) {
					inWorld(t, func(w *world) { k.test(w, guesses, guess) })
				})
			}
		}
	}
}

func (k grpcOption) test(w *world, guesses bool, guess string) {
	_, _, gate := grpcOption{}.server(w, true)
	first := kvpb.NewTestKVClient(w.dial(gate))

	s, _, addr := k.server(w, guesses)
	want, err := k.calls(w.Context(), kvpb.NewTestKVClient(w.raw(gate)), kvpb.NewTestKVClient(w.raw(addr, k.dial...)),
		guess)
	if err != nil {
		w.Fatal(err)
	}
	if n := strings.Count(want, "code = "+k.code.String()+" "); n < 1 {
		w.Fatalf("plainly none of\n%s\nhas code %v", want, k.code)
	}
	wantKept := kept(s, addr)

	s, seen, addr := k.server(w, guesses)
	cc := w.dial(addr, append(slices.Clone(k.dial),
		specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))...)
	got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
		return k.calls(ctx, first, kvpb.NewTestKVClient(cc), guess)
	})
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		w.Errorf("results (-plain +guessed):\n%s", diff)
	}
	if diff := cmp.Diff(wantKept, kept(s, addr)); diff != "" {
		w.Errorf("the server saw (-plain +guessed):\n%s", diff)
	}
	if writes := len(notesWith(s, "told of a write")); k.code == codes.OK && writes != 1 {
		w.Errorf("%d writes, want 1", writes)
	}
	if n := seen.speculative(); k.code == codes.OK && (n == 0) != k.waits {
		w.Errorf("%d calls went out on a guess; the calls are to wait: %v", n, k.waits)
	}
	w.quiet(cc)
}

package randtest

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/stats"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// In some worlds calls have options of grpc's, which depend on their place, and so have connections
// and servers. A server signs what is read with those that it sees. So the results tell of a call
// that goes out without its options, or with another one's.

// authorities end in this where somebody chose them.
const chosen = ".chosen"

// drawn reports whether something in the world has an option, which so many in a hundred have.
func (w *world) drawn(percent int, option string, of ...string) bool {
	return w.sc.knobs.Options && w.sc.chance.percent(percent, append([]string{"option", option}, of...)...)
}

// callOptions returns the options of the call at this place. The journal is told if what a read
// observes is not what came with its value.
func (w *world) callOptions(
	ctx context.Context, at string, o *kvpb.Operation,
) (opts []grpc.CallOption, check func(value string)) {
	key := cmp.Or(o.GetGet().GetKey(), o.GetPut().GetKey(), o.GetAppend().GetKey()) // none of a relay
	draw := func(percent int, name string, o grpc.CallOption) {
		if w.drawn(percent, name, at) {
			opts = append(opts, o)
		}
	}
	draw(20, "authority", grpc.CallAuthority(strings.ReplaceAll(at, "/", "-")+chosen))
	draw(15, "wait for ready", grpc.WaitForReady(true))
	draw(15, "static", grpc.StaticMethod())
	if !w.sc.retries() { // where the first attempt is a call on a guess, there is one more
		draw(15, "buffer", grpc.MaxRetryRPCBufferSize(64))
	}
	switch {
	case w.drawn(40, "compressed"): // which may be larger than what it holds
		draw(40, "gzip", grpc.UseCompressor(gzip.Name))
	case !w.sc.Faults && (key == "" || steady(key)): // code gives up where a call fails
		draw(10, "receive", grpc.MaxCallRecvMsgSize(w.sc.chance.below(120, "receive", at)))
		draw(5, "send", grpc.MaxCallSendMsgSize(w.sc.chance.below(120, "send", at)))
	}
	if o.GetGet() == nil || sharesLane(ctx) || !w.drawn(10, "observes", at) {
		return opts, func(string) {}
	}
	var trailer metadata.MD
	var from peer.Peer
	finished := 0
	return append(opts, grpc.Trailer(&trailer), grpc.Peer(&from), grpc.OnFinish(func(error) { finished++ })),
		func(value string) {
			if got := trailer.Get("stamp"); len(got) != 1 || got[0] != value || from.Addr == nil || finished != 1 {
				w.journal.brokenRule("the call at %s read %q, with the trailer %v from %v, and finished %d times",
					at, value, trailer, from.Addr, finished)
			}
		}
}

// dialOptions returns those of a connection, with the service config.
func (w *world) dialOptions(target, conn string) []grpc.DialOption {
	var opts []grpc.DialOption
	if config := w.sc.serviceConfig(); config != "" {
		opts = append(opts, w.configured(target, conn, config)...)
	}
	if w.drawn(20, "authority", conn) {
		opts = append(opts, grpc.WithAuthority("connection"+chosen))
	}
	if w.drawn(40, "compressed") && w.drawn(40, "gzip", conn) {
		opts = append(opts, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	if w.drawn(30, "stats", conn) {
		opts = append(opts, grpc.WithStatsHandler(labels{}))
	}
	if w.drawn(30, "no retries", conn) && !w.sc.retries() {
		opts = append(opts, grpc.WithDisableRetry())
	}
	return opts
}

// configured has a connection get its service config, by default or from its resolver.
func (w *world) configured(target, conn, config string) []grpc.DialOption {
	if !w.drawn(30, "resolver", conn) {
		return []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}
	}
	r := manual.NewBuilderWithScheme("passthrough")
	r.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		address := strings.TrimPrefix(target, "passthrough:///")
		r.InitialState(resolver.State{
			Addresses: []resolver.Address{{Addr: address}}, ServiceConfig: cc.ParseServiceConfig(config),
		})
	}
	return []grpc.DialOption{grpc.WithResolvers(r)}
}

// ignored is what a stats handler does that looks at nothing.
type ignored struct{}

func (ignored) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (ignored) HandleRPC(context.Context, stats.RPCStats)                         {}
func (ignored) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (ignored) HandleConn(context.Context, stats.ConnStats)                       {}

// labels is a client's stats handler that adds metadata to what goes out.
type labels struct{ ignored }

func (labels) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "label", "labelled")
}

// seals is a server's stats handler that notes how calls come in.
type seals struct{ ignored }

type sealKey struct{}

func (seals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, sealKey{}, new(stats.InHeader))
}

func (seals) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InHeader); ok {
		*ctx.Value(sealKey{}).(*stats.InHeader) = *in
	}
}

// sealedBy returns a value with the options that the call came in with.
func sealedBy(ctx context.Context, value string) string {
	in, ok := ctx.Value(sealKey{}).(*stats.InHeader)
	if !ok {
		return value
	}
	if in.Compression != "" {
		value += "+" + in.Compression
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, name := range []string{"label", ":authority"} {
		for _, v := range md.Get(name) {
			if name == "label" || strings.HasSuffix(v, chosen) {
				value += "+" + v
			}
		}
	}
	return value
}

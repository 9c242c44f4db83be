package telemetry

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	"github.com/foresay/foresay/driver"
)

// specSuffix is what the name of a method's speculative stream ends with.
const specSuffix = ".spec"

// ClientHandler returns a handler around one that makes spans and counts calls,
// such as otelgrpc.NewClientHandler's, for grpc.WithStatsHandler. With it
//
//   - the spans of package telemetry are linked to client spans;
//   - a call over a speculative stream, whose name ends with ".spec", appears under
//     its method's name, as a unary call with the status that it would have as an
//     ordinary one; how long it took does not include the wait for its caller's word,
//     and its span says foresay.speculative;
//   - such a call that was called off, or that its server does not take or serve, is
//     not an error: the status of its span stays unset;
//   - a call that was held, and is sent as an ordinary one, has its span where it
//     would be without Foresay.
//
// A nil inner handler makes no spans and counts nothing.
func ClientHandler(inner stats.Handler) stats.Handler { return &clientHandler{orNone(inner)} }

// ServerHandler is ClientHandler for a server's handler, for grpc.StatsHandler.
func ServerHandler(inner stats.Handler) stats.Handler { return &serverHandler{orNone(inner)} }

func orNone(h stats.Handler) stats.Handler {
	if h == nil {
		return none{}
	}
	return h
}

// none is a handler that does nothing.
type none struct{}

func (none) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (none) HandleRPC(context.Context, stats.RPCStats)                         {}
func (none) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (none) HandleConn(context.Context, stats.ConnStats)                       {}

type clientHandler struct{ stats.Handler }

func (h *clientHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	ctx, info = tagged(ctx, info)
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	if a == nil || a.site != info.FullMethodName { // nobody follows it, or it is an interceptor's own
		return h.Handler.TagRPC(ctx, info)
	}
	return h.follow(ctx, info, a, ctx.Value(streamKey{}) != nil)
}

// tagged returns what an inner handler is told of a call, under its method's name.
func tagged(ctx context.Context, info *stats.RPCTagInfo) (context.Context, *stats.RPCTagInfo) {
	method, streamed := strings.CutSuffix(info.FullMethodName, specSuffix)
	if !streamed {
		if ctx.Value(streamKey{}) != nil { // a call that the handler of a speculative one makes
			ctx = context.WithValue(ctx, streamKey{}, nil)
		}
		return ctx, info
	}
	own := *info
	own.FullMethodName = method
	return context.WithValue(ctx, streamKey{}, new(stream)), &own
}

// follow has the inner handler make the span of an attempt, and keeps it.
func (h *clientHandler) follow(ctx context.Context, info *stats.RPCTagInfo, a *attempt, streamed bool) context.Context {
	if a.speculative && !streamed {
		ctx = trace.ContextWithSpan(ctx, a.outer)
	}
	before := trace.SpanContextFromContext(ctx)
	ctx = h.Handler.TagRPC(ctx, info)
	span := trace.SpanFromContext(ctx)
	if sc := span.SpanContext(); span.IsRecording() && sc.SpanID() != before.SpanID() {
		a.span.Store(&sc)
	}
	return ctx
}

func (h *clientHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch event := s.(type) {
	case *stats.OutPayload:
		asked(ctx, event.Payload)
	case *stats.InPayload:
		answered(ctx, event.Payload, event.RecvTime)
	default:
		ctx, s = unary(ctx, s)
	}
	h.Handler.HandleRPC(ctx, s)
}

type serverHandler struct{ stats.Handler }

func (h *serverHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if driver.IsProbe(ctx) {
		return ctx
	}
	return h.Handler.TagRPC(tagged(ctx, info))
}

func (h *serverHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch event := s.(type) {
	case *stats.InPayload:
		asked(ctx, event.Payload)
	case *stats.OutPayload:
		answered(ctx, event.Payload, event.SentTime)
	default:
		ctx, s = unary(ctx, s)
	}
	if !driver.IsProbe(ctx) {
		h.Handler.HandleRPC(ctx, s)
	}
}

func (h *serverHandler) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if driver.IsProbe(ctx) {
		return ctx
	}
	return h.Handler.TagConn(ctx, info)
}

func (h *serverHandler) HandleConn(ctx context.Context, s stats.ConnStats) {
	if !driver.IsProbe(ctx) {
		h.Handler.HandleConn(ctx, s)
	}
}

// CallAttributes are the attributes that a call has in metrics besides its
// method's: foresay.speculative, if it travels over a speculative stream. It is for
// otelgrpc.WithMetricAttributesFn.
func CallAttributes(ctx context.Context) []attribute.KeyValue {
	if s, _ := ctx.Value(streamKey{}).(*stream); s == nil {
		return nil
	}
	return []attribute.KeyValue{keySpeculative.Bool(true)}
}

// unary returns what happened on a speculative stream as it would have been told
// of the unary call that the stream carries.
func unary(ctx context.Context, s stats.RPCStats) (context.Context, stats.RPCStats) {
	if of, _ := ctx.Value(streamKey{}).(*stream); of == nil {
		return ctx, s
	}
	switch event := s.(type) {
	case *stats.Begin:
		own := *event
		own.IsClientStream, own.IsServerStream = false, false
		return ctx, &own
	case *stats.InHeader:
		own := *event
		own.FullMethod = strings.TrimSuffix(own.FullMethod, specSuffix)
		return ctx, &own
	case *stats.OutHeader:
		own := *event
		own.FullMethod = strings.TrimSuffix(own.FullMethod, specSuffix)
		return ctx, &own
	case *stats.End:
		return ended(ctx, event)
	}
	return ctx, s
}

// stream is what is known of a call over a speculative stream: how it ended.
type stream struct {
	result   atomic.Pointer[rpcstatus.Status]
	refused  atomic.Bool               // its server did not take it
	answered atomic.Pointer[time.Time] // when its result was there, if that stands without the caller's word
}

type streamKey struct{}

// asked looks in a frame for what the caller stands on.
func asked(ctx context.Context, payload any) {
	frame, ok := payload.(*specv1.ClientFrame)
	if s, _ := ctx.Value(streamKey{}).(*stream); !ok || frame.GetRequest() == nil || s == nil {
		return
	}
	if frame.GetRequest().GetCaller() == specv1.CallerState_CALLER_STATE_SPECULATIVE {
		trace.SpanFromContext(ctx).SetAttributes(keySpeculative.Bool(true))
	}
}

// answered looks in a frame for the call's result.
func answered(ctx context.Context, payload any, at time.Time) {
	frame, ok := payload.(*specv1.ServerFrame)
	if !ok {
		return
	}
	s, ok := ctx.Value(streamKey{}).(*stream)
	if !ok {
		return
	}
	if frame.GetRefused() != nil {
		s.refused.Store(true)
	}
	if frame.GetFinal() == nil {
		return
	}
	if !frame.GetFinal().GetTentative() {
		s.answered.Store(&at)
	}
	result := new(rpcstatus.Status)
	if b := frame.GetFinal().GetStatus(); b == nil || proto.Unmarshal(b, result) != nil {
		result = nil // a response
	}
	s.result.Store(result)
}

// ended returns the end of a speculative stream as that of the call which it
// carried, with the context for whoever is told.
func ended(ctx context.Context, end *stats.End) (context.Context, stats.RPCStats) {
	s, ok := ctx.Value(streamKey{}).(*stream)
	if !ok {
		return ctx, end
	}
	own := *end
	if at := s.answered.Load(); at != nil {
		own.EndTime = *at // what follows is the wait for its caller's word
	}
	switch result := s.result.Load(); {
	case end.Error == nil && s.refused.Load(): // it did not run
		own.Error = status.Error(grpccodes.Canceled, "the server takes no such call on a guess now")
	case end.Error == nil && result != nil:
		own.Error = status.ErrorProto(result)
		return ctx, &own
	case end.Error == nil:
		return ctx, &own
	}
	switch status.Code(own.Error) {
	case grpccodes.Canceled, grpccodes.Unimplemented:
		ctx = trace.ContextWithSpan(ctx, calm{trace.SpanFromContext(ctx)})
	}
	return ctx, &own
}

// calm is a span whose status stays as it is.
type calm struct{ trace.Span }

// SetStatus does nothing.
func (calm) SetStatus(codes.Code, string) {}

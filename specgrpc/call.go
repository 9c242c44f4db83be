package specgrpc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// call is a unary call of a task, and the transport of its attempts.
type call struct {
	op      driver.Operation
	conn    *ClientConn
	method  *method
	request proto.Message // the attempts' own once it is kept
	reply   protoreflect.MessageType
	opts    []grpc.CallOption
	few     [3]grpc.CallOption // what they begin with, once kept
	first   outgoing           // the first attempt's; here to save an allocation
	kept    bool
}

// recycle gives a call back that is not the engine's.
func (k *call) recycle() {
	if c := k.conn; !k.kept {
		*k = call{}
		c.calls.Put(k)
	}
}

// newCall describes a call to the engine.
func (c *ClientConn) newCall(
	ctx context.Context, m *method, req, reply proto.Message, opts []grpc.CallOption,
) (*call, error) {
	observed := observes(opts)
	identity, err := c.identity(ctx, m, req, observed, opts)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "specgrpc: %s to %s: identify the call: %v", m.name, c.name(), err)
	}
	k, ok := c.calls.Get().(*call)
	if !ok {
		k = new(call)
	}
	k.conn, k.method, k.request, k.reply, k.opts = c, m, req, reply.ProtoReflect().Type(), opts
	k.op = driver.Operation{
		CallSite: m.site, Conn: c.cc.Target(), Identity: identity, Whole: true, Request: req,
		Observed: observed, CanSpeculate: plainCodec(opts), Peer: m.peer(opts), Transport: k,
	}
	if k.op.Observed || ownCredentials(opts) {
		k.op.CallSite = m.observed
	}
	return k, nil
}

// Keep copies the request and the options, since the caller may change them once
// it has a predicted response.
func (k *call) Keep() {
	k.kept = true
	k.opts = slices.DeleteFunc(append(k.few[:0], k.opts...), isObserver)
	k.request = proto.Clone(k.request)
	k.op.Request = k.request
	if k.method.copyRequest {
		// Interceptors may change the request that they are given.
		k.op.Request = proto.Clone(k.request)
	}
}

// Release lets go of the request: nobody sends it again, nor learns from it.
func (k *call) Release() { k.request, k.op.Request = nil, nil }

// maxIdentityBytes is how long an identity may be that a task keeps as it is. Of a
// longer one it keeps a hash.
const maxIdentityBytes = 256

// identity tells calls apart: by connection, method, request or the call site's key
// of it, outgoing metadata, options, and whether the caller looks at the transport.
func (c *ClientConn) identity(
	ctx context.Context, m *method, req proto.Message, observed bool, opts []grpc.CallOption,
) (identity string, err error) {
	c.scratch(func(b []byte) []byte {
		b, err = c.appendIdentity(appendOptions(b, opts), ctx, m, req, observed)
		if len(b) <= maxIdentityBytes {
			identity = string(b)
		} else {
			sum := sha256.Sum256(b)
			identity = string(sum[:])
		}
		return b
	})
	return identity, err
}

// appendOptions appends the options that are plain values: goroutines that share a context may make
// calls that differ in nothing else, in another order in each run. See SameCall for the others.
func appendOptions(b []byte, opts []grpc.CallOption) []byte {
	for _, o := range opts {
		if isObserver(o) {
			continue
		}
		if with, ok := appendValue(append(b, 0), reflect.ValueOf(o)); ok {
			b = with
		}
	}
	return b
}

// maxScratchBytes is how large a buffer may be that waits for its next use.
const maxScratchBytes = 64 << 10

func (c *callSiteTable) appendIdentity(b []byte, ctx context.Context, m *method, req proto.Message, observed bool) ([]byte, error) { //nolint:revive // what is appended to comes first
	b = append(b, c.id...)
	b = append(b, 0)
	b = append(b, m.name...)
	if observed {
		b = append(b, "\x00observed"...)
	}
	b = m.appendMetadata(append(b, 0), ctx)
	b = append(b, 0)
	if m.cfg.Key != nil {
		key, err := keyOf(&m.cfg, req)
		return append(b, key...), err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)
}

// keyOf calls the call site's Key. Without a key a call cannot be told from others,
// so that a panic fails the call.
func keyOf(cfg *control.CallSiteConfig, req proto.Message) (key []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic of CallSiteConfig.Key: %v\n\n%s", p, debug.Stack())
		}
	}()
	return cfg.Key(req), nil
}

// ownCredentials reports whether the call has credentials of its own, which tell on
// whose behalf it is made and which predictors do not see: what they learnt from
// others is not for it.
func ownCredentials(opts []grpc.CallOption) bool {
	for _, o := range opts {
		if _, ok := o.(grpc.PerRPCCredsCallOption); ok {
			return true
		}
	}
	return false
}

// plainCodec reports whether messages travel as protocol buffers, which the
// frames of a speculative stream are.
func plainCodec(opts []grpc.CallOption) bool {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.ForceCodecCallOption, grpc.ForceCodecV2CallOption, grpc.CustomCodecCallOption:
			return false
		case grpc.ContentSubtypeCallOption:
			if o.ContentSubtype != "" && o.ContentSubtype != "proto" {
				return false
			}
		}
	}
	return true
}

// deliver gives the engine's answer to the code that made the call.
func (k *call) deliver(value any, err error, reply proto.Message, opts []grpc.CallOption) error {
	value, err = reveal(value, err, opts)
	if err == nil {
		err = k.fill(reply, value)
	}
	if err != nil {
		var p *panicError
		if errors.As(err, &p) {
			panic(p.value)
		}
		err = asStatus(err)
	}
	finished(opts, err)
	return err
}

func (k *call) fill(reply proto.Message, value any) error {
	m, ok := value.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "specgrpc: %s to %s: the call's value is a %T", k.method.name, k.conn.name(),
			value)
	}
	if err := fill(reply, m); err != nil {
		return status.Errorf(codes.Internal, "specgrpc: %s to %s: copy the response: %v", k.method.name, k.conn.name(), err)
	}
	return nil
}

// Ended makes the engine's report of an ended context a status.
func (k *call) Ended(err error) error { return asStatus(err) }

// Blocking says that Start returns when the attempt has ended.
func (k *call) Blocking() {}

// Start makes the call through the user's interceptors, the innermost of which
// is ClientConn.carry.
func (k *call) Start(ctx context.Context, a *driver.Attempt) {
	if ctx.Err() != nil { // abandoned before it began
		a.Finish(nil, status.FromContextError(ctx.Err()).Err())
		return
	}
	out := &k.first
	if a.Number() > 1 {
		out = new(outgoing)
	}
	out.Context, out.call, out.attempt = ctx, k, a
	reply := k.reply.New().Interface()
	var value any = reply
	err := errGoexit
	defer func() {
		if p := recover(); p != nil {
			err = asPanic(p)
		}
		if err != nil {
			value = nil
		}
		a.Finish(value, err)
		out.drain()
	}()
	if k.op.Observed {
		value, err = k.observe(out, reply)
	} else {
		err = k.conn.cc.Invoke(out, k.method.name, k.request, reply, k.opts...)
	}
	k.method.looks.over(err)
}

var errGoexit = errors.New("specgrpc: an interceptor ended the call's goroutine")

// panicError carries the panic of an interceptor to the code that made the call.
type panicError struct {
	value any
	stack []byte
}

// asPanic returns a panic with its stack, where it was first seen.
func asPanic(p any) *panicError {
	if pe, ok := p.(*panicError); ok {
		return pe
	}
	return &panicError{value: p, stack: debug.Stack()}
}

func (p *panicError) Error() string {
	return fmt.Sprintf("specgrpc: panic: %v\n\n%s", p.value, p.stack)
}

// Equal compares by the call site's equivalence.
func (k *call) Equal(prediction, actual any) bool { return k.method.equal(prediction, actual) }

func (m *method) equal(prediction, actual any) bool {
	if equal := m.cfg.Equal; equal != nil {
		return equal(prediction, actual)
	}
	return sameMessage(prediction, actual)
}

// Same compares exactly.
func (k *call) Same(a, b any) bool { return sameMessage(a, b) }

func sameMessage(a, b any) bool {
	x, ok := a.(proto.Message)
	y, ok2 := b.(proto.Message)
	return ok && ok2 && proto.Equal(x, y)
}

// Accept copies a response that user code offers as a prediction.
func (k *call) Accept(prediction any) (any, bool) {
	if own, ok := prediction.(ownPrediction); ok {
		return own.Message, true
	}
	m, ok := prediction.(proto.Message)
	if !ok {
		return nil, false
	}
	out := convert(m, k.reply)
	return out, out != nil
}

// Adopt takes a response that nobody changes as it is.
func (k *call) Adopt(prediction any) (any, bool) {
	if m, ok := prediction.(proto.Message); ok && m.ProtoReflect().IsValid() && m.ProtoReflect().Type() == k.reply {
		return m, true
	}
	return k.Accept(prediction)
}

// ownPrediction is a prediction that nobody else holds.
type ownPrediction struct{ proto.Message }

// marshal returns the one serialization by which equal messages are recognised
// within a process.
func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// fill makes dst equal to src, which stays untouched.
func fill(dst, src proto.Message) error {
	if d, s := dst.ProtoReflect().Descriptor(), src.ProtoReflect().Descriptor(); d != s {
		if d.FullName() != s.FullName() {
			return fmt.Errorf("specgrpc: a %s is wanted, not a %s", d.FullName(), s.FullName())
		}
		b, err := proto.Marshal(src)
		if err != nil {
			return err
		}
		return proto.Unmarshal(b, dst)
	}
	proto.Reset(dst)
	proto.Merge(dst, src)
	return nil
}

// convert returns a copy of m of the given type, or nil if m is no such message.
func convert(m proto.Message, to protoreflect.MessageType) proto.Message {
	if m == nil || !m.ProtoReflect().IsValid() || m.ProtoReflect().Descriptor().FullName() != to.Descriptor().FullName() {
		return nil
	}
	out := to.New().Interface()
	if fill(out, m) != nil {
		return nil
	}
	return out
}

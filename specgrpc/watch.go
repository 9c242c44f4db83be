package specgrpc

import (
	"context"
	"hash/maphash"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"
)

// ObserveInterceptor observes the unary calls of an ordinary grpc.ClientConn and
// changes nothing about them: give it to grpc.WithChainUnaryInterceptor as the
// outermost. It takes the ClientOptions that concern call sites, modes and the
// Control; call site files are read once. Calls are told apart by method, not by the
// connection.
func ObserveInterceptor(opts ...ClientOption) (grpc.UnaryClientInterceptor, error) {
	cfg := newClientConfig()
	for _, o := range opts {
		if err := o.applyClient(&cfg); err != nil {
			return nil, err
		}
	}
	ctl, err := cfg.theControl()
	if err != nil {
		return nil, err
	}
	cfg.readOnce = true
	t := newCallSiteTable(ctl, cfg.mode, "observed")
	if err := t.configure(&cfg); err != nil {
		return nil, err
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		m := t.method(method)
		ctx, w := t.watch(ctx, driver.Operation{CallSite: m.site}, m, req, reply, opts)
		err := invoker(ctx, method, req, reply, cc, opts...)
		w.done(reply, err)
		return err
	}, nil
}

// ObserveStreamInterceptor notes where requests open streams on an ordinary grpc.ClientConn, and
// changes nothing about them: speculation would wait there. Give it to
// grpc.WithChainStreamInterceptor.
func ObserveStreamInterceptor(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if !driver.InTask(ctx) { // else a connection of NewClient's is within, or the stream is no part of the task
		_ = driver.BarrierBefore(ctx, control.WaitStream, method) // outside of tasks it does not fail
	}
	return streamer(ctx, desc, cc, method, opts...)
}

// watch begins to observe a call that is made plainly, in the context that
// it returns. It returns no watched if there is nothing to observe.
func (c *callSiteTable) watch(
	ctx context.Context, op driver.Operation, m *method, args, reply any, opts []grpc.CallOption,
) (context.Context, *watched) {
	w, ok := c.watches.Get().(*watched)
	if !ok {
		w = new(watched)
	}
	var ok2 bool
	w.req, ok = args.(proto.Message)
	w.reply, ok2 = reply.(proto.Message)
	w.table, w.method, w.opts = c, m, opts
	op.Request, op.Observed, op.Peer, op.Transport = args, !ok || !ok2 || observes(opts) || ownCredentials(opts),
		m.peer(opts), w
	if !w.call.Begin(ctx, op) {
		w.release()
		return ctx, nil
	}
	return &lookingContext{ctx, m}, w
}

// done tells the result of a call, if it is observed.
func (w *watched) done(reply any, err error) {
	if w != nil {
		w.method.looks.over(err)
		w.call.Done(reply, err)
		w.release()
	}
}

func (w *watched) release() {
	c := w.table
	w.table, w.method, w.req, w.reply, w.opts = nil, nil, nil, nil, nil
	c.watches.Put(w)
}

// watched is a call of plain code as the engine's observation sees it.
type watched struct {
	call   driver.Watched
	table  *callSiteTable
	method *method
	req    proto.Message
	reply  proto.Message
	opts   []grpc.CallOption
}

var _ driver.PublicDigester = (*watched)(nil)

// Start is never called: the program makes the call itself.
func (w *watched) Start(context.Context, *driver.Attempt) {
	panic("specgrpc: an observed call is started")
}

// Equal compares by the call site's equivalence.
func (w *watched) Equal(prediction, actual any) bool { return w.method.equal(prediction, actual) }

// Same compares exactly.
func (w *watched) Same(a, b any) bool { return sameMessage(a, b) }

// Ask has predictors be told on whose behalf the call is made.
func (w *watched) Ask(ctx context.Context) context.Context { return w.table.ask(ctx, w.method, w.opts) }

// Accept takes what could be the response. It makes no copy: nobody uses it.
func (w *watched) Accept(prediction any) (any, bool) {
	m, ok := prediction.(proto.Message)
	if !ok || !m.ProtoReflect().IsValid() ||
		m.ProtoReflect().Descriptor().FullName() != w.reply.ProtoReflect().Descriptor().FullName() {
		return nil, false
	}
	return m, true
}

// RequestDigest tells requests apart, and on whose behalf they are made.
func (w *watched) RequestDigest(ctx context.Context) uint64 {
	return w.table.requestDigest(ctx, w.method, w.req, w.opts)
}

// ResponseDigest tells responses apart.
func (w *watched) ResponseDigest(response any) (digest uint64, ok bool) {
	return w.table.responseDigest(response)
}

// PublicDigest tells requests apart, whoever makes them.
func (w *watched) PublicDigest() uint64 { return w.table.publicDigest(w.method, w.req) }

// PublicDigest tells requests apart, whoever makes them.
func (k *call) PublicDigest() uint64 { return k.conn.publicDigest(k.method, k.request) }

func (c *callSiteTable) publicDigest(m *method, req proto.Message) (digest uint64) {
	c.scratch(func(b []byte) []byte {
		b = append(append(b, m.name...), 0)
		b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)
		if err == nil {
			digest = max(maphash.Bytes(digestSeed, b), 1)
		}
		return b
	})
	return digest
}

// RequestDigest tells requests apart, and on whose behalf they are made.
func (k *call) RequestDigest(ctx context.Context) uint64 {
	return k.conn.requestDigest(ctx, k.method, k.request, k.opts)
}

// ResponseDigest tells responses apart.
func (k *call) ResponseDigest(response any) (digest uint64, ok bool) {
	return k.conn.responseDigest(response)
}

var digestSeed = maphash.MakeSeed() //tidy:ok drawn once; digests never leave the process

func (c *callSiteTable) requestDigest(
	ctx context.Context, m *method, req proto.Message, opts []grpc.CallOption,
) (digest uint64) {
	principal, ok := c.principal(c.ask(ctx, m, opts))
	if !ok {
		return 0
	}
	c.scratch(func(b []byte) []byte {
		b, err := c.appendIdentity(b, ctx, m, req, false)
		if err == nil {
			b = append(append(b, 0), principal...)
			digest = max(maphash.Bytes(digestSeed, b), 1)
		}
		return b
	})
	return digest
}

func (c *callSiteTable) responseDigest(response any) (digest uint64, ok bool) {
	m, ok := response.(proto.Message)
	if !ok {
		return 0, false
	}
	c.scratch(func(b []byte) []byte {
		b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
		digest, ok = maphash.Bytes(digestSeed, b), err == nil
		return b
	})
	return digest, ok
}

// scratch lends f a buffer; f returns what became of it.
func (c *callSiteTable) scratch(f func(b []byte) []byte) {
	buffer, ok := c.scratches.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	if b := f((*buffer)[:0]); cap(b) <= maxScratchBytes {
		*buffer = b
		c.scratches.Put(buffer)
	}
}

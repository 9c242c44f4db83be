package specgrpc

import (
	"context"
	"hash/maphash"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
)

// ObserveInterceptor observes the unary calls of an ordinary grpc.ClientConn and
// changes nothing about them: give it to grpc.WithChainUnaryInterceptor as the
// outermost. It takes the ClientOptions that concern sites, modes and the
// Control; site files are read once. Calls are told apart by method, not by the
// connection.
func ObserveInterceptor(opts ...ClientOption) (grpc.UnaryClientInterceptor, error) {
	cfg := newClientConfig()
	for _, o := range opts {
		if err := o.applyClient(&cfg); err != nil {
			return nil, err
		}
	}
	control, err := cfg.theControl()
	if err != nil {
		return nil, err
	}
	cfg.readOnce = true
	t := newSiteTable(control, cfg.mode, "observed")
	if err := t.configure(&cfg); err != nil {
		return nil, err
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		w := t.watch(ctx, method, req, reply, opts)
		err := invoker(ctx, method, req, reply, cc, opts...)
		w.Done(reply, err)
		return err
	}, nil
}

// watch begins to observe a call that is made outside of tasks.
func (c *siteTable) watch(ctx context.Context, fullMethod string, args, reply any, opts []grpc.CallOption) *foresay.Watched {
	m := c.method(fullMethod)
	req, ok := args.(proto.Message)
	res, ok2 := reply.(proto.Message)
	return foresay.Watch(ctx, foresay.Operation{
		Site: m.site, Request: req, Observed: !ok || !ok2 || observes(opts), Transport: &watched{c, m, req, res},
	})
}

// watched is a call of plain code as the engine's observation sees it.
type watched struct {
	table  *siteTable
	method *method
	req    proto.Message
	reply  proto.Message
}

var _ foresay.Digester = (*watched)(nil)

// Start is never called: the program makes the call itself.
func (w *watched) Start(context.Context, *foresay.Attempt) {
	panic("specgrpc: an observed call is started")
}

// Equal compares by the site's equivalence.
func (w *watched) Equal(prediction, actual any) bool { return w.method.equal(prediction, actual) }

// Same compares exactly.
func (w *watched) Same(a, b any) bool { return sameMessage(a, b) }

// Accept takes what could be the response. It makes no copy: nobody uses it.
func (w *watched) Accept(prediction any) (any, bool) {
	m, ok := prediction.(proto.Message)
	if !ok || !m.ProtoReflect().IsValid() || m.ProtoReflect().Descriptor().FullName() != w.reply.ProtoReflect().Descriptor().FullName() {
		return nil, false
	}
	return m, true
}

// RequestDigest tells requests apart, and on whose behalf they are made.
func (w *watched) RequestDigest(ctx context.Context) uint64 {
	return w.table.requestDigest(ctx, w.method, w.req)
}

// ResponseDigest tells responses apart.
func (w *watched) ResponseDigest(response any) (digest uint64, ok bool) {
	return responseDigest(response)
}

// RequestDigest tells requests apart, and on whose behalf they are made.
func (k *call) RequestDigest(ctx context.Context) uint64 {
	return k.conn.requestDigest(ctx, k.method, k.request)
}

// ResponseDigest tells responses apart.
func (k *call) ResponseDigest(response any) (digest uint64, ok bool) { return responseDigest(response) }

var digestSeed = maphash.MakeSeed() //tidy:ok drawn once; digests never leave the process

func (c *siteTable) requestDigest(ctx context.Context, m *method, req proto.Message) uint64 {
	b, err := c.appendIdentity(nil, ctx, m, req, false)
	if err != nil {
		return 0
	}
	principal, ok := c.principal(ctx)
	if !ok {
		return 0
	}
	b = append(append(b, 0), principal...)
	return max(maphash.Bytes(digestSeed, b), 1)
}

func responseDigest(response any) (digest uint64, ok bool) {
	m, ok := response.(proto.Message)
	if !ok {
		return 0, false
	}
	b, err := marshal(m)
	return maphash.Bytes(digestSeed, b), err == nil
}

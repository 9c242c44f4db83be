package etcd

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// write makes a request with side effects: in a task when everything before it
// is confirmed, and once however often the code runs.
func write[Req, Resp proto.Message](
	ctx context.Context, r *remote, method string, req Req, call func(context.Context, Req, ...grpc.CallOption) (Resp,
		error), opts []grpc.CallOption,
) (Resp, error) {
	if !driver.InTask(ctx) {
		return call(ctx, req, opts...)
	}
	var none Resp
	identity, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return none, fmt.Errorf("etcd: %s: %w", method, err)
	}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: r.writes, Conn: r.name, Identity: method + "\x00" + string(identity), Request: req,
		Transport: &writing{func(ctx context.Context) (any, error) { return call(ctx, req, opts...) }},
	})
	if err != nil {
		return none, err
	}
	return proto.Clone(v.(Resp)).(Resp), nil
}

// writing carries a write. It is never predicted.
type writing struct {
	call func(ctx context.Context) (any, error)
}

func (w *writing) Start(ctx context.Context, a *driver.Attempt) {
	go func() { a.Finish(w.call(ctx)) }()
}

func (*writing) Equal(_, _ any) bool      { return false }
func (*writing) Same(_, _ any) bool       { return false }
func (*writing) Accept(_ any) (any, bool) { return nil, false }

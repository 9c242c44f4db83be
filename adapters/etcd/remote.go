package etcd

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/driver"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/replica"
)

// remote is the protocol's client below clientv3.KV. It sees requests as they are
// sent, after all options.
type remote struct {
	near, far member
	name      string
	ranges    *replica.Reader[*pb.RangeRequest, *pb.RangeResponse]
	txns      *replica.Reader[*pb.TxnRequest, *pb.TxnResponse]
	// What is serializable as it was asked for, and so is not predicted.
	weakRanges *replica.Reader[*pb.RangeRequest, *pb.RangeResponse]
	weakTxns   *replica.Reader[*pb.TxnRequest, *pb.TxnResponse]
	writes     *control.CallSite
}

// member is where requests go, with the call options that its client has.
type member struct {
	client pb.KVClient
	opts   []grpc.CallOption
}

func newMember(c *clientv3.Client) (member, error) {
	// Only calls tell a client's options.
	r := &recorder{}
	if _, err := clientv3.NewKVFromKVClient(r, c).Get(context.Background(), "k"); err != nil {
		return member{}, err
	}
	return member{clientv3.RetryKVClient(c), r.opts}, nil
}

// recorder answers the call that newMember makes.
type recorder struct {
	pb.KVClient
	opts []grpc.CallOption
}

func (r *recorder) Range(_ context.Context, _ *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	r.opts = opts
	return &pb.RangeResponse{}, nil
}

func (m member) ranged(ctx context.Context, req *pb.RangeRequest) (*pb.RangeResponse, error) {
	return m.client.Range(ctx, req, m.opts...)
}

func (m member) txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	return m.client.Txn(ctx, req, m.opts...)
}

// weakly is ranged for what a member can answer by itself.
func (m member) weakly(ctx context.Context, req *pb.RangeRequest) (*pb.RangeResponse, error) {
	return m.ranged(ctx, serializableRange(req))
}

func (m member) weaklyTxn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	return m.txn(ctx, serializableTxn(req))
}

func newRemote(cfg *Config) (*remote, error) {
	far, err := newMember(cfg.Far)
	if err != nil {
		return nil, err
	}
	near, err := newMember(cfg.Near)
	if err != nil {
		return nil, err
	}
	r := &remote{near: near, far: far}
	r.name = fmt.Sprintf("etcd@%p", r)
	ranges := reading(cfg, "/Range", near.weakly, far.ranged)
	ranges.Equal = func(near, far *pb.RangeResponse) bool { return cfg.sameHeader(near, far) && sameRange(near, far) }
	if r.ranges, err = replica.New(ranges); err != nil {
		return nil, err
	}
	txns := reading(cfg, "/Txn", near.weaklyTxn, far.txn)
	txns.Equal = func(near, far *pb.TxnResponse) bool { return cfg.sameHeader(near, far) && sameTxn(near, far) }
	if r.txns, err = replica.New(txns); err != nil {
		return nil, err
	}
	weak := &Config{Name: cfg.Name + "/serializable", Mode: control.ModeOff}
	if r.weakRanges, err = replica.New(reading(weak, "/Range", near.weakly, near.weakly)); err != nil {
		return nil, err
	}
	if r.weakTxns, err = replica.New(reading(weak, "/Txn", near.weaklyTxn, near.weaklyTxn)); err != nil {
		return nil, err
	}
	r.writes, err = control.NewCallSite(control.CallSiteConfig{Name: cfg.Name + "/write", Mode: control.ModeOff,
		Effect: control.EffectImmediate})
	return r, err
}

// reading configures one kind of reads.
func reading[Req, Resp any](
	cfg *Config, name string, near, far func(context.Context, Req) (Resp, error),
) replica.Config[Req, Resp] {
	out := replica.NearFar(near, far)
	out.Name, out.Mode, out.Share, out.Control, out.Limits = cfg.Name+name, cfg.Mode, cfg.Share, cfg.Control, cfg.Limits
	out.Ordered = !cfg.Concurrent
	return out
}

// Range is Get.
func (r *remote) Range(ctx context.Context, req *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	switch {
	case req.GetSerializable():
		return r.weakRanges.Read(ctx, req)
	case driver.InTask(ctx):
		return r.ranges.Read(ctx, req)
	default:
		return r.far.client.Range(ctx, req, opts...)
	}
}

// RangeStream is GetStream.
func (r *remote) RangeStream(
	ctx context.Context, req *pb.RangeRequest, opts ...grpc.CallOption,
) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	if err := foresay.Barrier(ctx); err != nil {
		return nil, err
	}
	if req.GetSerializable() {
		return r.near.client.RangeStream(ctx, req, r.near.opts...)
	}
	return r.far.client.RangeStream(ctx, req, opts...)
}

// Put is an effect.
func (r *remote) Put(ctx context.Context, req *pb.PutRequest, opts ...grpc.CallOption) (*pb.PutResponse, error) {
	return write(ctx, r, "Put", req, r.far.client.Put, opts)
}

// DeleteRange is Delete, an effect.
func (r *remote) DeleteRange(
	ctx context.Context, req *pb.DeleteRangeRequest, opts ...grpc.CallOption,
) (*pb.DeleteRangeResponse, error) {
	return write(ctx, r, "DeleteRange", req, r.far.client.DeleteRange, opts)
}

// Compact is an effect.
func (r *remote) Compact(
	ctx context.Context, req *pb.CompactionRequest, opts ...grpc.CallOption,
) (*pb.CompactionResponse, error) {
	return write(ctx, r, "Compact", req, r.far.client.Compact, opts)
}

// Txn is a read or an effect, as its operations are.
func (r *remote) Txn(ctx context.Context, req *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	switch reads, weak := kindOf(req); {
	case !reads:
		return write(ctx, r, "Txn", req, r.far.client.Txn, opts)
	case weak:
		return r.weakTxns.Read(ctx, req)
	case driver.InTask(ctx):
		return r.txns.Read(ctx, req)
	default:
		return r.far.client.Txn(ctx, req, opts...)
	}
}

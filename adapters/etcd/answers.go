package etcd

import (
	"bytes"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// kindOf tells of a transaction whether it only reads, and whether a member
// answers it by itself as it is. etcd takes one with a transaction within it for a
// write, whatever that does.
func kindOf(req *pb.TxnRequest) (reads, weak bool) {
	ops := append(slices.Clone(req.GetSuccess()), req.GetFailure()...)
	// One that only compares has nothing that asks for a weak answer.
	weak = len(ops) > 0
	for _, op := range ops {
		r := op.GetRequestRange()
		if r == nil {
			return false, false
		}
		weak = weak && r.GetSerializable()
	}
	return true, weak
}

func serializableRange(req *pb.RangeRequest) *pb.RangeRequest {
	if req.GetSerializable() {
		return req
	}
	req = proto.Clone(req).(*pb.RangeRequest)
	req.Serializable = true
	return req
}

// serializableTxn returns a transaction that only reads as one that a member can
// answer by itself.
func serializableTxn(req *pb.TxnRequest) *pb.TxnRequest {
	req = proto.Clone(req).(*pb.TxnRequest)
	for _, branch := range [][]*pb.RequestOp{req.GetSuccess(), req.GetFailure()} {
		for _, op := range branch {
			op.GetRequestRange().Serializable = true
		}
	}
	return req
}

// headed is an answer.
type headed interface{ GetHeader() *pb.ResponseHeader }

// sameHeader reports whether an answer may stand for another at all. ModRevisions
// of different clusters say nothing.
func (cfg *Config) sameHeader(near, far headed) bool {
	return near.GetHeader().GetClusterId() == far.GetHeader().GetClusterId() &&
		(!cfg.SameRevision || near.GetHeader().GetRevision() == far.GetHeader().GetRevision())
}

// sameRange reports whether two answers to one request have the same keys in the
// same state. A key's ModRevision tells its state.
func sameRange(near, far *pb.RangeResponse) bool {
	if near.GetCount() != far.GetCount() || near.GetMore() != far.GetMore() || len(near.GetKvs()) != len(far.GetKvs()) {
		return false
	}
	for i, n := range near.GetKvs() {
		f := far.GetKvs()[i]
		if n.GetModRevision() != f.GetModRevision() || !bytes.Equal(n.GetKey(), f.GetKey()) {
			return false
		}
	}
	return true
}

// sameTxn is sameRange for transactions that only read.
func sameTxn(near, far *pb.TxnResponse) bool {
	if near.GetSucceeded() != far.GetSucceeded() || len(near.GetResponses()) != len(far.GetResponses()) {
		return false
	}
	for i, n := range near.GetResponses() {
		f := far.GetResponses()[i]
		if n.GetResponseRange() == nil || f.GetResponseRange() == nil ||
			!sameRange(n.GetResponseRange(), f.GetResponseRange()) {
			return false
		}
	}
	return true
}

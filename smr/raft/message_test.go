package raft

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
)

func TestCodec(t *testing.T) {
	wiretest.Codec(t, Protocol().Codec, tagRPC, []smr.Message{
		rpc{&raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), From: new(uint64(1)), Term: new(uint64(3)), Entries: []*raftpb.Entry{{Term: new(uint64(3)), Index: new(uint64(9)), Data: []byte("x")}}}},
		record{hard: hardState{term: 3, vote: 1, commit: 9}},
		record{hard: hardState{term: 3}, entries: []*raftpb.Entry{{Type: raftpb.EntryConfChange.Enum(), Term: new(uint64(3)), Index: new(uint64(9)), Data: []byte("x")}}},
	}, protocmp.Transform(), cmp.AllowUnexported(rpc{}, record{}, hardState{}))
}

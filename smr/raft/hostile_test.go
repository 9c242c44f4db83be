package raft

import (
	"io"
	"math/rand/v2"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// blank is a state machine without a state.
type blank struct{}

func (blank) Apply([]byte) []byte { return nil }
func (blank) Read([]byte) []byte  { return nil }

func (blank) Snapshot(io.Writer) error { return nil }

func (blank) Restore(io.Reader) error { return nil }

// lone returns the replica of a group of three that the other two have admitted, and its world.
func lone(t testing.TB) (*replica, *protocol.Env[smr.Message]) {
	members := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: members, Machine: blank{}})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	r.Start(env, nil)
	for _, id := range []protocol.ID{2, 3} {
		r.Receive(env, id, kit.Welcome{Disk: kit.Incarnation(id), Asked: r.Admission.Own(), Known: r.Admission.Own()})
	}
	if !r.Admission.Admitted() {
		t.Fatal("the replica is not admitted")
	}
	return r, env
}

// FuzzReceive gives a replica whatever a peer with the right to speak may send: it must not panic,
// whatever the library would do.
func FuzzReceive(f *testing.F) {
	add := func(m *raftpb.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(3))
	}
	one, two, five := new(uint64(1)), new(uint64(2)), new(uint64(5))
	add(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: two, To: one, Term: five, Commit: five})
	add(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: two, To: one, Term: five, Index: one, LogTerm: one,
		Entries: entriesOf(2, 5)})
	add(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: two, To: one, Term: five, Index: one, LogTerm: one,
		Entries: []*raftpb.Entry{nil}})
	add(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: two, To: one, Term: two, Index: five})
	add(&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: two, To: one, Term: two, Context: []byte{1}})
	add(&raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: two, To: one, Term: five})
	add(&raftpb.Message{Type: raftpb.MsgVote.Enum(), From: two, To: one, Term: five})
	add(&raftpb.Message{Type: raftpb.MsgPreVoteResp.Enum(), From: two, To: one, Term: two})
	add(&raftpb.Message{Type: raftpb.MsgHup.Enum(), From: two, To: one})
	f.Fuzz(func(t *testing.T, b []byte, steps uint8) {
		m := new(raftpb.Message)
		if proto.Unmarshal(b, m) != nil {
			return
		}
		r, env := lone(t)
		for i := range steps % 6 {
			if i%2 == 0 {
				r.Expire(env, electionTimer{})
			}
			from := protocol.ID(2 + i%2)
			msg := proto.CloneOf(m)
			msg.From, msg.To = new(uint64(from)), one
			r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: rpc{msg}})
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			deliverToSelf(r, env)
		}
	})
}

// deliverToSelf carries out what the replica sent to itself.
func deliverToSelf(r *replica, env *protocol.Env[smr.Message]) {
	out := env.Out
	env.Out = nil
	for _, e := range out {
		if e.Kind == protocol.KindSend && e.To == r.Cfg.ID {
			r.Receive(env, r.Cfg.ID, e.Msg)
		}
	}
}

func TestStrangersHaveNoSay(t *testing.T) {
	r, env := lone(t)
	vote := func(from protocol.ID, disk kit.Incarnation) bool {
		env.Begin(0)
		r.Receive(env, from, kit.Letter{Disk: disk, Msg: rpc{&raftpb.Message{
			Type: raftpb.MsgVote.Enum(), From: new(uint64(from)), To: new(uint64(1)), Term: new(uint64(9)),
			Index: new(uint64(9)), LogTerm: new(uint64(9)),
		}}})
		return r.core.term() == 9
	}
	if vote(2, 0) {
		t.Error("a message without an incarnation was taken")
	}
	r.Receive(env, 2, kit.Letter{Disk: 20, Msg: rpc{&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)),
		To: new(uint64(1)), Term: new(uint64(1)), Commit: new(uint64(1))}}})
	if vote(2, 21) {
		t.Error("a message of another disk was taken")
	}
}

// A member from the beginning that lost its disk and comes back as one that joins has no say before
// somebody has said that its ID is free.
func TestLostDiskThatJoinsDoesNotVote(t *testing.T) {
	r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: []smr.Member{{ID: 2}, {ID: 3}}, Join: true, Machine: blank{}})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	r.Start(env, nil)
	vote := func() bool {
		env.Begin(0)
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: rpc{&raftpb.Message{
			Type: raftpb.MsgVote.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9)), Index: new(uint64(9)),
			LogTerm: new(uint64(9)),
		}}})
		return len(env.Out) > 0
	}
	if vote() {
		t.Error("it votes, and nobody has said that its ID is no member's")
	}
	r.Receive(env, 2, kit.Welcome{Disk: 2, Asked: r.Admission.Own(), Known: r.Admission.Own(),
		Members: []smr.Member{{ID: 2}, {ID: 3}}})
	if !vote() {
		t.Error("it does not vote although its ID is free: the group may need it before it knows that it was added")
	}
}

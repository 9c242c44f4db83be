package raft

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// replica is a member of a Raft group.
type replica struct {
	kit.Replica

	core      core
	part      *part // nil: the group is one of package smr
	reads     reads
	admitted  bool // when it began, or since
	begun     bool
	leaving   bool   // it was removed, and is about to end
	led       bool   // as of the last call
	ledSince  uint64 // the index of the last entry when it began to lead
	changing  bool   // a change of the members that we proposed is not applied
	heard     map[protocol.ID]time.Duration
	leaderAt  time.Duration // when the leader was last heard
	leaderWas protocol.ID   // who it was that was heard then
	hasLeader bool          // it was heard within the patience, by the timer that missedTimer is
	patient   time.Duration // PartConfig.Patience

	lastSnapshot smr.Slot
	saving       *raftpb.SnapshotMetadata // of the snapshot that is being written
	arrived      *kit.Arrived             // whole, and not yet installed
	learners     map[protocol.ID]*learner // of a leader
}

type (
	electionTimer struct{}
	missedTimer   struct{} // the leader was not heard for the patience
	beatTimer     struct{}
	leaveTimer    struct{}
)

// farewell is how many round trips a replica that was removed goes on voting: as long as others do
// not know that its removal is decided, they count it.
const farewell = 50

// newReplica returns a replica of a group.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("raft", cfg)
	if err != nil {
		return nil, err
	}
	r := &replica{Replica: base, heard: map[protocol.ID]time.Duration{}, learners: map[protocol.ID]*learner{}}
	r.core = core{id: cfg.ID, log: new(storage), admission: r.Admission, apply: r.apply, read: r.confirmed,
		send: r.sendSnapshot, restore: r.install}
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin, Members: r.onMembers, Gone: r.gone, Dismissed: r.leave,
		Client: r.onClient, Peer: r.onPeer, Joins: r.learn, Timer: r.onTimer, Flush: r.finish,
		HandOver: r.handOver, Rest: r.restRules(),
		Failed: r.onTransferFailed, Saved: r.onSaved, Status: r.status, Doubtful: r.applyDoubtful,
	})
	return r, nil
}

// beat is the time between a leader's heartbeats.
func (r *replica) beat() time.Duration { return max(r.Cfg.RoundTrip/2, time.Millisecond) }

// patience is how long a follower does without a leader at least, and a leader without a quorum.
func (r *replica) patience() time.Duration {
	most := r.Tempo.Times(3)
	if r.patient == 0 {
		return most
	}
	return min(most, max(r.Tempo.Times(1.5), r.patient))
}

func (r *replica) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (blank bool, err error) {
	recover := r.recover
	if r.part != nil {
		recover = r.part.recover
	}
	applied, blank, err := recover(env, log)
	if err == nil {
		err = r.core.start(applied, uint64(r.Cfg.MaxUnderwayBytes))
	}
	return blank, err
}

func (r *replica) onBegin(env *protocol.Env[smr.Message]) {
	fresh := r.first() // there is no leader that could be disturbed
	r.begun, r.admitted = true, r.Admission.Admitted()
	r.core.flush(env)
	if fresh {
		env.After(0, electionTimer{}) // once admitted
	} else {
		r.awaitLeader(env)
	}
	r.finish(env)
}

func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if r.part != nil {
		return // the owner proposes
	}
	switch msg := msg.(type) {
	case kit.ChangeRequest:
		r.onChange(env, from, msg)
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	default:
		r.onRequest(env, from, msg)
	}
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch msg := letter.Msg.(type) {
	case rpc:
		r.onRPC(env, from, letter.Disk, msg)
	default:
		if r.part != nil {
			r.part.onPeer(env, from, letter)
			return
		}
		r.onTransfer(env, from, letter)
	}
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case electionTimer:
		r.onElectionTimer(env)
	case missedTimer:
		r.hasLeader = false
	case beatTimer:
		r.onBeat(env)
	case leaveTimer:
		r.Leave(env)
	case sweepTimer:
		r.part.sweep(env)
	}
}

// finish looks at what a call has changed.
func (r *replica) finish(env *protocol.Env[smr.Message]) {
	if r.Over() {
		return
	}
	if leads := r.core.leads(); leads != r.led {
		r.becomes(env, leads)
	}
	if r.State.Removed(r.Cfg.ID) {
		r.leave(env)
	}
	if r.part != nil {
		r.part.tend(env)
		return
	}
	r.maybeSnapshot(env)
	r.maybeRead(env)
}

func (r *replica) becomes(env *protocol.Env[smr.Message], leader bool) {
	r.led = leader
	r.Resting.Wake(env.Now)
	r.Desk.Reset()
	r.changing = false
	r.clearTransfers()
	if r.part != nil {
		r.part.leads(leader)
	}
	if leader {
		r.ledSince = r.core.last
		for _, m := range r.State.Members() {
			r.heard[m.ID] = env.Now
		}
		env.Stop(electionTimer{})
		env.After(kit.UntilBeat(r.Cfg, env.Now, r.beat()), beatTimer{})
		return
	}
	env.Stop(beatTimer{})
	r.dropLearners()
	r.reads.giveUp(env, r.leader())
	r.awaitLeader(env)
}

// onMembers has a replica that was admitted stand for election, or wait for a leader.
func (r *replica) onMembers(env *protocol.Env[smr.Message]) {
	if !r.begun || r.admitted || !r.Admission.Admitted() {
		return
	}
	r.admitted = true
	if r.first() {
		r.core.campaign(env)
	}
	r.awaitLeader(env)
}

// onRPC hands a peer's message to the library, unless it is of a disk that has no say.
func (r *replica) onRPC(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, msg rpc) {
	if !r.mayAnswer(msg.Message) || !r.core.accepts(from, msg.Message) || r.stranger(from, disk) {
		return
	}
	if r.tellRemoved(env, from, msg.Message) {
		return
	}
	if from != r.Cfg.ID {
		r.heard[from] = env.Now
	}
	switch msg.GetType() {
	case raftpb.MsgPreVote, raftpb.MsgVote:
		if string(msg.GetContext()) == forced {
			break
		}
		if msg.GetTerm() > r.core.term() && r.leaderIsThere(env.Now) {
			return // a replica that does not hear the leader is not to disturb [Raft thesis §9.6]
		}
	}
	r.core.step(env, msg.Message)
	switch msg.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		if r.core.leader() == from {
			if gap := env.Now - r.leaderAt; r.leaderWas == from {
				// if it is long, its heartbeats, of which there are two in a round trip, are behind
				// something large
				r.Tempo.Saw(env.Now, 2*gap)
			}
			r.leaderWas = from
			r.hears(env)
		}
	case raftpb.MsgVote:
		if r.core.hard.vote == uint64(from) {
			r.awaitLeader(env)
		}
	}
}

// tellRemoved answers a replica that stands for election though it was removed. The leader says
// nothing to it from the moment on in which it executes the removal, so it may never learn of it.
func (r *replica) tellRemoved(env *protocol.Env[smr.Message], from protocol.ID, m *raftpb.Message) bool {
	t := m.GetType()
	if from == r.Cfg.ID || !r.State.Removed(from) || t != raftpb.MsgPreVote && t != raftpb.MsgVote {
		return false
	}
	r.Admission.SendAhead(env, from, kit.Removed{})
	return true
}

// gone: a replica that was removed ends by leave.
func (r *replica) gone() bool { return false }

// leave has a replica end soon that was removed.
func (r *replica) leave(env *protocol.Env[smr.Message]) {
	if !r.leaving {
		r.leaving = true
		env.After(farewell*r.Cfg.RoundTrip, leaveTimer{})
	}
}

// mayAnswer reports whether the replica may have a say about a message. One that is not admitted
// may follow, and vote, if it joins: whom it answers knows from the log which disk was added under
// its ID. It must, for it may be a member before it knows, and the others not a majority without
// it.
func (r *replica) mayAnswer(m *raftpb.Message) bool {
	if r.Admission.Admitted() {
		return true
	}
	switch m.GetType() {
	case raftpb.MsgStorageAppendResp, raftpb.MsgStorageApplyResp:
		return true // its own
	case raftpb.MsgApp, raftpb.MsgHeartbeat, raftpb.MsgPreVote, raftpb.MsgVote:
		return r.Admission.Votes()
	}
	return false
}

func (r *replica) status(s *smr.Status) {
	switch {
	case r.leaving:
		s.Role = "removed"
	case !r.Admission.Admitted():
		s.Role = "blank"
	default:
		s.Role = r.core.role()
	}
	s.Snapshot = r.lastSnapshot
	if r.core.node != nil {
		s.Leader, s.Ballot, s.Committed = r.core.leader(), r.core.term(), smr.Slot(r.core.committed())
		s.LogSize = len(r.core.log.entries)
	}
}

// Check is part of protocol.Checked.
func (r *replica) Check() error {
	if r.Over() || r.core.node == nil {
		return nil
	}
	if err := r.State.Check(); err != nil {
		return err
	}
	return r.core.check(uint64(r.State.Applied()))
}

func (r *replica) String() string {
	s := r.Status(0)
	return fmt.Sprintf("%s of term %d, leader %d, committed %d, applied %d, log of %d, members %v", s.Role, s.Ballot,
		s.Leader, s.Committed,
		s.Applied, s.LogSize, s.Members)
}

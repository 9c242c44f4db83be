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
	cfg       smr.ReplicaConfig
	core      core
	state     *kit.State
	desk      *kit.Desk
	admission *kit.Admission
	reads     reads
	halted    string // why the replica does nothing any more; "" if it does
	leaving   bool   // it was removed, and is about to end
	led       bool   // as of the last call
	ledSince  uint64 // the index of the last entry when it began to lead
	changing  bool   // a change of the members that we proposed is not applied
	heard     map[protocol.ID]time.Duration
	leaderAt  time.Duration // when the leader was last heard
	leaderWas protocol.ID   // who it was that was heard then
	hasLeader bool          // whether leaderAt is of a leader
	tempo     kit.Tempo     // of what leaders say
	rest      kit.Rest

	lastSnapshot smr.Slot
	saving       *raftpb.SnapshotMetadata // of the snapshot that is being written
	arrived      *kit.Arrived             // whole, and not yet installed
	transfers    *kit.Transfers
	learners     map[protocol.ID]*learner // of a leader
}

type (
	electionTimer struct{}
	beatTimer     struct{}
	leaveTimer    struct{}
)

// farewell is how many round trips a replica that was removed goes on voting: as long as others do
// not know that its removal is decided, they count it.
const farewell = 50

// newReplica returns a replica of a group.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("raft: %w", err)
	}
	members := cfg.Members
	if cfg.Join {
		members = nil
	}
	r := &replica{cfg: cfg, heard: map[protocol.ID]time.Duration{},
		learners: map[protocol.ID]*learner{}, tempo: kit.NewTempo(cfg.RoundTrip)}
	r.state = kit.NewState(cfg.Machine, members)
	r.desk = kit.NewDesk(cfg, r.state)
	r.admission = kit.NewAdmission(cfg, r.state)
	r.rest = kit.NewRest(cfg)
	r.transfers = kit.NewTransfers(r.admission, &r.tempo)
	r.core = core{id: cfg.ID, log: new(storage), admission: r.admission, apply: r.apply, read: r.confirmed,
		send: r.sendSnapshot, restore: r.install}
	return r, nil
}

// beat is the time between a leader's heartbeats.
func (r *replica) beat() time.Duration { return max(r.cfg.RoundTrip/2, time.Millisecond) }

// patience is how long a follower does without a leader at least, and a leader without a quorum.
func (r *replica) patience() time.Duration { return r.tempo.Times(3) }

// Start is part of protocol.Node.
func (r *replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	applied, err := r.recover(env, log)
	if err == nil {
		err = r.core.start(applied, 1<<20)
	}
	if err != nil {
		r.halt(env, err.Error())
		return
	}
	env.Send(protocol.App, smr.MembersChanged{Members: r.state.Members()})
	r.core.flush(env)
	if r.cfg.Leader == r.cfg.ID && len(log) == 0 {
		env.After(0, electionTimer{}) // once admitted
	} else {
		r.awaitLeader(env)
	}
	r.finish(env)
}

// Receive is part of protocol.Node.
func (r *replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if q, ok := msg.(smr.StatusQuery); ok && from == protocol.App {
		env.Send(protocol.App, r.status(q.ID))
		return
	}
	if r.halted != "" || r.admission.Refused() {
		return
	}
	r.maybeWake(env, kit.Inside(msg))
	switch msg := msg.(type) {
	case kit.Letter:
		r.onReplica(env, from, msg)
	case smr.HandOver:
		if from == protocol.App {
			r.onHandOver(env, msg)
		}
	case kit.PartSaved:
		r.state.PartSaved(env, from)
	case kit.Request, kit.OpenRequest:
		r.onRequest(env, from, msg)
	case kit.ChangeRequest:
		r.onChange(env, from, msg)
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	case kit.Hello:
		r.onHello(env, from, msg)
	case kit.Welcome:
		r.admit(env, func() { r.admission.Welcome(env, from, msg) })
	}
	r.finish(env)
}

// onReplica takes what replicas say to each other.
func (r *replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch msg := letter.Msg.(type) {
	case rpc:
		r.onRPC(env, from, letter.Disk, msg)
	case kit.RestNow:
		r.onRestNow(env, from, letter.Disk, msg)
	case kit.Rested:
		r.onRested(env, from, letter.Disk, msg)
	case kit.SnapshotChunk:
		r.onChunk(env, from, letter.Disk, msg)
	case kit.SnapshotWanted:
		r.onWanted(env, from, letter.Disk, msg)
	case kit.Removed:
		if _, member := r.state.Member(from); member && r.admission.Genuine(env, from, letter.Disk) {
			r.leave(env)
		}
	}
}

// Expire is part of protocol.Node.
func (r *replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.halted != "" || r.admission.Refused() {
		return
	}
	switch t := t.(type) {
	case electionTimer:
		r.onElectionTimer(env)
	case beatTimer:
		r.onBeat(env)
	case kit.SaveTimer:
		done, err := r.state.ContinueSave(env)
		r.saved(env, done, err)
	case kit.TransferTimer:
		r.onTransferTimer(env, t.To)
	case leaveTimer:
		r.end(env, smr.RefusedAsRemoved(r.cfg.ID))
	case kit.AdmissionTimer:
		r.admit(env, func() { r.admission.Expire(env) })
	}
	r.finish(env)
}

// finish looks at what a call has changed, and sends the answers that it made.
func (r *replica) finish(env *protocol.Env[smr.Message]) {
	if r.halted != "" {
		return
	}
	if leads := r.core.leads(); leads != r.led {
		r.becomes(env, leads)
	}
	if r.state.Removed(r.cfg.ID) {
		r.leave(env)
	}
	r.maybeStir(env)
	r.maybeSnapshot(env)
	r.maybeRead(env)
	r.desk.Flush(env)
}

func (r *replica) becomes(env *protocol.Env[smr.Message], leader bool) {
	r.led = leader
	r.rest.Wake(env.Now)
	r.desk.Reset()
	r.changing = false
	r.transfers.Clear()
	if leader {
		r.ledSince = r.core.last
		for _, m := range r.state.Members() {
			r.heard[m.ID] = env.Now
		}
		env.Stop(electionTimer{})
		env.After(kit.UntilBeat(r.cfg, env.Now, r.beat()), beatTimer{})
		return
	}
	env.Stop(beatTimer{})
	r.dropLearners()
	r.reads.giveUp(env, r.leader())
	r.awaitLeader(env)
}

// admit does something by which the replica may be admitted.
func (r *replica) admit(env *protocol.Env[smr.Message], do func()) {
	before := r.admission.Admitted()
	do()
	if r.admission.Admitted() && !before {
		if r.cfg.Leader == r.cfg.ID && r.core.hard.term <= 1 {
			r.core.campaign(env)
		}
		r.awaitLeader(env)
	}
}

// onRPC hands a peer's message to the library, unless it is of a disk that has no say.
func (r *replica) onRPC(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, msg rpc) {
	if !r.mayAnswer(msg.Message) || !r.core.accepts(from, msg.Message) || !r.admission.Genuine(env, from, disk) ||
		r.stranger(from, disk) {
		return
	}
	if r.tellRemoved(env, from, msg.Message) {
		return
	}
	if from != r.cfg.ID {
		r.heard[from] = env.Now
	}
	r.stir(env.Now, from)
	switch msg.GetType() {
	case raftpb.MsgPreVote, raftpb.MsgVote:
		if string(msg.GetContext()) == forced {
			break
		}
		r.relyOnHost(env.Now)
		if r.led || r.hasLeader && env.Now-r.leaderAt < r.patience() && env.Now >= r.leaderAt {
			if msg.GetTerm() > r.core.term() {
				return // there is a leader: a replica that does not hear it is not to disturb [Raft thesis §9.6]
			}
		}
	}
	r.core.step(env, msg.Message)
	switch msg.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		if r.core.leader() == from {
			if gap := env.Now - r.leaderAt; r.leaderWas == from {
				// if it is long, its heartbeats, of which there are two in a round trip, are behind
				// something large
				r.tempo.Saw(env.Now, 2*gap)
			}
			r.leaderAt, r.leaderWas, r.hasLeader = env.Now, from, true
			r.awaitLeader(env)
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
	if from == r.cfg.ID || !r.state.Removed(from) || t != raftpb.MsgPreVote && t != raftpb.MsgVote {
		return false
	}
	r.admission.SendAhead(env, from, kit.Removed{})
	return true
}

// leave has a replica end soon that was removed.
func (r *replica) leave(env *protocol.Env[smr.Message]) {
	if !r.leaving {
		r.leaving = true
		env.After(farewell*r.cfg.RoundTrip, leaveTimer{})
	}
}

// mayAnswer tells whether the replica may have a say about a message. One that is not admitted may
// follow, and vote, if it joins: whom it answers knows from the log which disk was added under its
// ID. It must, for it may be a member before it knows, and the others not a majority without it.
func (r *replica) mayAnswer(m *raftpb.Message) bool {
	if r.admission.Admitted() {
		return true
	}
	switch m.GetType() {
	case raftpb.MsgStorageAppendResp, raftpb.MsgStorageApplyResp:
		return true // its own
	case raftpb.MsgApp, raftpb.MsgHeartbeat, raftpb.MsgPreVote, raftpb.MsgVote:
		return r.admission.Votes()
	}
	return false
}

func (r *replica) status(id smr.CallID) smr.Status {
	s := smr.Status{
		ID: id, Replica: r.cfg.ID, Applied: r.state.Applied(), Snapshot: r.lastSnapshot, Sessions: r.state.Sessions(),
		Members: r.state.Members(),
	}
	switch {
	case r.leaving:
		s.Role = "removed"
	case r.halted != "" || r.admission.Refused():
		s.Role = "refused"
	case !r.admission.Admitted():
		s.Role = "blank"
	default:
		s.Role = r.core.role()
	}
	if r.core.node != nil {
		s.Leader, s.Ballot, s.Committed = r.core.leader(), r.core.term(), smr.Slot(r.core.committed())
		s.LogSize, s.Resting = len(r.core.log.entries), r.rest.Resting()
	}
	return s
}

// halt ends the replica: what its disk holds cannot be relied on.
func (r *replica) halt(env *protocol.Env[smr.Message], why string) {
	r.end(env, smr.Refused{Reason: why})
}

func (r *replica) end(env *protocol.Env[smr.Message], why smr.Refused) {
	r.halted = why.Reason
	env.Send(protocol.App, why)
}

// Check is part of protocol.Checked.
func (r *replica) Check() error {
	if r.halted != "" || r.core.node == nil {
		return nil
	}
	if err := r.state.Check(); err != nil {
		return err
	}
	return r.core.check(uint64(r.state.Applied()))
}

func (r *replica) String() string {
	s := r.status(0)
	return fmt.Sprintf("%s of term %d, leader %d, committed %d, applied %d, log of %d, members %v", s.Role, s.Ballot,
		s.Leader, s.Committed,
		s.Applied, s.LogSize, s.Members)
}

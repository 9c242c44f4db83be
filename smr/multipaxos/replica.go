package multipaxos

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// role is what a replica is doing.
type role uint8

const (
	blank     role = iota // does not take part, or not yet
	follower              // accepts what the leader of its ballot says
	candidate             // has asked, or is about to ask, whether it may lead
	leader
	removed // was a member
)

func (r role) String() string {
	return [...]string{"blank", "follower", "candidate", "leader", "removed"}[r]
}

// Replica is an acceptor, learner and possible leader.
type Replica struct {
	cfg       smr.ReplicaConfig
	state     *kit.State
	admission *kit.Admission
	role      role

	promised Ballot // nothing below it is accepted any more
	log      slotLog
	// commit is the last slot that is known to be decided, as are all before it. Invariant:
	// log.base <= commit <= log.last(), and all up to it are applied.
	commit smr.Slot
	// matched is the last slot up to which the log is the promised ballot's leader's. Invariant:
	// commit <= matched <= log.last().
	matched smr.Slot

	leader protocol.ID // of the promised ballot, 0 if not known
	quiet  bool        // no leader was heard for leaderTimeout
	reset  time.Duration
	heard  struct { // the last word of a leader
		from protocol.ID
		at   time.Duration
	}
	missing Missing // the last one that was sent
	asked   time.Duration
	tempo   kit.Tempo // of what the leader says, and of answers to it
	rest    kit.Rest
	// transfers are a leader's, to peers and learners.
	transfers *kit.Transfers

	candidacy candidacy
	lead      leadership
	desk      *kit.Desk
}

// The timers of a replica.
type (
	leaderTimer    struct{} // the leader was not heard for leaderTimeout
	campaignTimer  struct{} // it is time to try to lead, or to try again
	heartbeatTimer struct{}
	quorumTimer    struct{} // the leader looks whether it still has a majority
	proposeTimer   struct{} // what came up together is proposed
)

// Times, as multiples of ReplicaConfig.RoundTrip, or of the present round trip where that is
// longer.
const (
	leaderTimeout = 2.5 // of the present one, as in the following but for heartbeats
	// a replica campaigns leaderTimeout after the last heartbeat and at random up to this much
	// later
	campaignSpan  = 1.5
	courtesy      = 2 // how much longer than the leader that was asked for others wait, in a new group
	heartbeat     = 0.5
	retry         = 0.5 // of a question to candidates
	candidateSpan = 3   // how long a candidate waits for more of what others have promised
)

// NewReplica returns a replica.
func NewReplica(cfg smr.ReplicaConfig) (*Replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("multipaxos: %w", err)
	}
	group := cfg.Members
	if cfg.Join {
		group = nil
	}
	r := &Replica{cfg: cfg, state: kit.NewState(cfg.Machine, group), tempo: kit.NewTempo(cfg.RoundTrip),
		rest: kit.NewRest(cfg)}
	r.admission = kit.NewAdmission(cfg, r.state)
	r.desk = kit.NewDesk(cfg, r.state)
	r.transfers = kit.NewTransfers(r.admission, &r.tempo)
	return r, nil
}

func (r *Replica) times(n float64) time.Duration { return time.Duration(n * float64(r.cfg.RoundTrip)) }

// Start takes over what is on the disk.
func (r *Replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	if err := r.load(env, log); err != nil {
		r.role = blank
		env.Send(protocol.App, smr.Refused{Reason: fmt.Sprintf("the disk does not have what was written to it: %v", err)})
		return
	}
	r.admission.Start(env, len(log) == 0 && r.log.disk.Snapshot() == 0)
	r.membersChanged(env)
}

func (r *Replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) error {
	slot, _, ok, err := r.state.Load(env, nil)
	if err != nil {
		return err
	}
	if ok {
		r.log.disk.Has(slot)
		r.commit = slot
	} else if len(log) == 0 && !r.cfg.Join {
		if err := r.log.disk.SaveWhole(env, r.state, nil); err != nil {
			return err
		}
	}
	for _, rec := range log {
		if err := r.log.load(rec); err != nil {
			return err
		}
		switch m := rec.Msg.(type) {
		case PromiseRecord:
			r.promised, r.commit = max(r.promised, m.Ballot), max(r.commit, m.Commit)
		case AcceptRecord:
			r.promised, r.commit = max(r.promised, m.Ballot), max(r.commit, m.Commit)
		}
	}
	if r.log.votes.Len() == 0 {
		r.log.base = max(r.log.base, slot)
	}
	// Of what is in the snapshot only that says what was decided: if it came from another replica,
	// votes in the log may be of lower ballots.
	r.log.forget(slot)
	if r.log.base > slot || r.commit > r.log.last() {
		return fmt.Errorf("slots %d to %d are in the log, %d are decided, and the snapshot is of slot %d",
			r.log.base+1, r.log.last(), r.commit, slot)
	}
	for r.state.Applied() < r.commit {
		s := r.state.Applied() + 1
		r.state.Apply(s, r.log.at(s).Entry)
		r.log.disk.Executed()
	}
	r.rematch()
	return nil
}

// rematch finds how far the log is that of the promised ballot's leader.
func (r *Replica) rematch() {
	r.matched = r.commit
	for r.matched < r.log.last() && r.log.at(r.matched+1).Ballot == r.promised {
		r.matched++
	}
}

// Receive takes a message.
func (r *Replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if q, ok := msg.(smr.StatusQuery); ok && from == protocol.App {
		env.Send(protocol.App, r.status(q.ID))
		return
	}
	r.maybeWake(env, kit.Inside(msg))
	if from == protocol.App {
		if h, ok := msg.(smr.HandOver); ok {
			to, reason := r.handOver(env, h.To)
			env.Send(protocol.App, smr.HandingOver{ID: h.ID, To: to, Reason: reason})
		}
		return
	}
	if r.admission.Refused() {
		return
	}
	switch msg := msg.(type) {
	case kit.Hello:
		r.onHello(env, from, msg)
	case kit.Welcome:
		r.admission.Welcome(env, from, msg)
		r.maybeTakePart(env)
	case kit.PartSaved:
		r.state.PartSaved(env, from)
	case kit.Request, kit.OpenRequest, kit.ChangeRequest, kit.ReadRequest:
		r.onClient(env, from, msg)
	case kit.Letter:
		if r.admission.Genuine(env, from, msg.Disk) {
			r.onReplica(env, from, msg)
		}
	}
	r.maybeStir(env)
	r.desk.Flush(env)
}

// onReplica takes what replicas that take part say to each other.
func (r *Replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch msg := letter.Msg.(type) {
	case kit.SnapshotChunk:
		r.onChunk(env, from, msg)
	case kit.SnapshotWanted:
		r.onSnapshotWanted(env, from, letter.Disk, msg)
	case kit.Removed:
		if _, member := r.state.Member(from); member {
			r.onRemoved(env)
		}
	}
	if !r.votes() {
		return
	}
	r.stir(env, from, letter.Msg)
	switch msg := letter.Msg.(type) {
	case kit.RestNow:
		r.onRestNow(env, from, msg)
	case kit.Rested:
		r.onRested(env, from, letter.Disk, msg)
	case PreVote:
		r.onPreVote(env, from, msg)
	case PreVoteReply:
		r.onPreVoteReply(env, from, msg)
	case Prepare:
		r.onPrepare(env, from, msg)
	case Accept:
		r.onAccept(env, from, msg)
	case Promise:
		r.onPromise(env, from, msg)
	case Accepted:
		r.onAccepted(env, from, letter.Disk, msg)
	case Follows:
		r.onFollows(env, from, letter.Disk, msg)
	case Missing:
		r.onMissing(env, from, letter.Disk, msg)
	case Refusal:
		r.onRefusal(env, msg)
	case Lead:
		r.onLead(env, from, msg)
	}
}

// votes tells whether the replica answers as an acceptor. One that joins does, even before it knows
// that it is a member, so that it can help to elect the leader that brings it up to date.
func (r *Replica) votes() bool {
	return r.role != removed && (r.role != blank || r.cfg.Join) && r.admission.Votes()
}

// Expire does what a timer is for.
func (r *Replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.admission.Refused() {
		return
	}
	switch t := t.(type) {
	case kit.AdmissionTimer:
		r.admission.Expire(env)
		r.maybeTakePart(env)
	case leaderTimer:
		r.onQuiet(env)
	case campaignTimer:
		r.onCampaign(env)
	case heartbeatTimer:
		r.onHeartbeat(env)
	case quorumTimer:
		r.onQuorumCheck(env)
	case proposeTimer:
		r.onProposeTimer(env)
	case kit.TransferTimer:
		// one that failed is asked for again
		r.transfers.OnTimer(env, t.To)
	case kit.SaveTimer:
		if to, ok := r.log.disk.ContinueSave(env, r.cfg, r.state, r.transfers); ok {
			r.log.cut(env, to, PromiseRecord{r.promised, r.commit})
		}
	}
	r.maybeStir(env)
	r.desk.Flush(env)
}

// maybeTakePart makes a follower of a replica that was admitted.
func (r *Replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.role != blank || !r.admission.Admitted() {
		return
	}
	if _, member := r.state.Member(r.cfg.ID); !member {
		return
	}
	r.becomeFollower(env, 0)
	if r.promised == 0 && !r.cfg.Join {
		r.quiet = true // a new group has no leader that could be disturbed
		wait := r.times(campaignSpan * env.Rand.Float64())
		switch r.cfg.Leader {
		case 0:
		case r.cfg.ID:
			wait = 0
		default:
			wait += r.times(courtesy)
		}
		env.Stop(leaderTimer{})
		env.After(wait, campaignTimer{})
	}
}

// membersChanged says who the members are, at the start and when they have changed.
func (r *Replica) membersChanged(env *protocol.Env[smr.Message]) {
	r.admission.MembersChanged(env)
	if r.state.Removed(r.cfg.ID) {
		r.onRemoved(env)
		return
	}
	r.maybeTakePart(env)
	if r.role == leader {
		r.followMembers(env)
	}
}

// onRemoved ends the replica's part: it is no member any more.
func (r *Replica) onRemoved(env *protocol.Env[smr.Message]) {
	if r.role == removed || r.admission.Refused() {
		return
	}
	if r.role == leader {
		r.heartbeat(env) // the others can go on when they know that this is decided
		r.stopLeading(env)
	}
	r.role, r.leader = removed, 0
	env.Stop(leaderTimer{})
	env.Stop(campaignTimer{})
	env.Send(protocol.App, smr.RefusedAsRemoved(r.cfg.ID))
}

func (r *Replica) status(id smr.CallID) smr.Status {
	role := r.role.String()
	if r.admission.Refused() {
		role = "refused"
	}
	return smr.Status{
		ID: id, Replica: r.cfg.ID, Role: role, Leader: r.leader, Ballot: uint64(r.promised),
		Committed: r.commit, Applied: r.state.Applied(), Snapshot: r.log.disk.Snapshot(),
		LogSize: r.log.disk.Records(), Sessions: r.state.Sessions(), Members: r.state.Members(), Resting: r.rest.Resting(),
	}
}

// salvage executes the whole log. How far it is decided may be on disk late, so what was accepted
// above that counts as well.
func salvage(
	cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	r, err := NewReplica(cfg)
	if err != nil {
		return smr.Salvaged{}, err
	}
	if err := r.load(env, log); err != nil {
		return smr.Salvaged{}, err
	}
	doubtful := 0
	for s := r.state.Applied() + 1; s <= r.log.last(); s++ {
		r.state.Apply(s, r.log.at(s).Entry)
		doubtful++
	}
	return r.state.Salvaged(doubtful), nil
}

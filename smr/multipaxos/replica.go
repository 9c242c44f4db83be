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
)

func (r role) String() string {
	return [...]string{"blank", "follower", "candidate", "leader"}[r]
}

// replica is what Paxos calls an acceptor and a learner, and a possible leader. A leader's learners
// are Raft's, replicas that are to be added.
type replica struct {
	kit.Replica // Tempo measures the leader's messages and the answers to them; Transfers are for a leader
	role        role

	// promised is the highest ballot that this replica has answered in; it accepts nothing in lower
	// ones. It is on disk before anybody is told of a promise or a vote in it.
	promised kit.Ballot
	log      slotLog
	// commit is the last slot that is known to be decided, as are all before it. Invariant:
	// log.base <= commit <= log.last(), and all up to it are applied.
	commit smr.Slot
	// matched is the last slot up to which this log is known to agree with that of the promised
	// ballot's leader. Above it there may be votes of lower ballots for other entries. Invariant:
	// commit <= matched <= log.last().
	matched smr.Slot

	leader protocol.ID   // of the promised ballot, 0 if not known
	quiet  bool          // no leader was heard for leaderTimeout
	reset  time.Duration // when leaderTimer was last set
	heard  struct {      // the last word of a leader
		from protocol.ID
		at   time.Duration
	}
	missing   missing // the last one that was sent, at missingAt
	missingAt time.Duration
	gotOn     time.Duration // when the candidacy last got on: a quorum or a part of a promise came

	candidacy candidacy
	lead      leadership
}

// The timers of a replica.
type (
	leaderTimer   struct{} // the leader was not heard for leaderTimeout
	campaignTimer struct{} // it is time to try to lead, or to try again
	beatTimer     struct{}
	quorumTimer   struct{} // the leader looks whether it still has a majority
)

// Times, as multiples of ReplicaConfig.RoundTrip, or of the present round trip where that is
// longer.
const (
	leaderTimeout = 2.5 // present round trips, as are the following, but for beats
	// a replica campaigns leaderTimeout after the last beat and at random up to this much
	// later
	campaignSpan  = 1.5
	courtesy      = 2 // in a new group, how much longer others wait than the configured leader
	beatEvery     = 0.5
	retry         = 0.5 // between two pre-votes of a candidate
	candidateSpan = 3   // how long a candidate waits for more of what others have promised
)

// newReplica returns a replica.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("multipaxos", cfg)
	if err != nil {
		return nil, err
	}
	r := &replica{Replica: base}
	r.log.journal.Follow(&r.Replica, r.cut)
	r.Follow(kit.Rules{
		Load: r.load, Members: r.onMembers, Leaving: r.onRemoved,
		Client: r.onClient, Peer: r.onPeer, Joins: r.learn, Timer: r.onTimer, Batch: r.onBatch,
		HandOver: r.handOver, Rest: r.restRules(),
		Takes: r.takes, Wanted: r.onSnapshotWanted, Installed: r.onInstalled, Saved: r.log.journal.Saved,
		Status: r.status, Doubtful: r.applyDoubtful,
	})
	return r, nil
}

// load takes over the newest snapshot and the log behind it, and executes what is decided. The
// log's records say what was promised and accepted, and how far slots were known to be decided when
// they were written. What was learnt to be decided later is not on disk: a leader says it again.
func (r *replica) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, nil, nil)
	if err != nil {
		return false, err
	}
	slot := found.Slot
	r.log.journal.Has(slot)
	r.commit = slot
	for _, rec := range log {
		if err := r.log.load(rec); err != nil {
			return false, err
		}
		switch m := rec.Msg.(type) {
		case promiseRecord:
			r.promised, r.commit = max(r.promised, m.Ballot), max(r.commit, m.Commit)
		case acceptRecord:
			r.promised, r.commit = max(r.promised, m.Ballot), max(r.commit, m.Commit)
		}
	}
	if r.log.slots.Len() == 0 { // all of the log is in the snapshot
		r.log.base = max(r.log.base, slot)
	}
	// For the slots that it covers, only the snapshot says what was decided: if it came from
	// another replica, the votes here may be of lower ballots, for other entries.
	r.log.forget(slot)
	if r.log.base > slot || r.commit > r.log.last() {
		return false, fmt.Errorf("slots %d to %d are in the log, %d are decided, and the snapshot is of slot %d",
			r.log.base+1, r.log.last(), r.commit, slot)
	}
	for r.State.Applied() < r.commit {
		s := r.State.Applied() + 1
		r.State.Apply(s, r.log.at(s).Entry)
		r.log.journal.Executed()
	}
	r.rematch()
	return found.Blank, nil
}

// rematch finds how far the log agrees with that of the promised ballot's leader. Up to commit it
// does, in whatever ballots the votes were cast: a decided entry is the one that every later ballot
// proposes. Above that, a vote in the promised ballot is for its leader's entry, and a vote of a
// lower ballot may be for another one.
func (r *replica) rematch() {
	r.matched = r.commit
	for r.matched < r.log.last() && r.log.at(r.matched+1).Ballot == r.promised {
		r.matched++
	}
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	if !r.mayVote() {
		return
	}
	switch msg := letter.Msg.(type) {
	case preVote:
		r.onPreVote(env, from, msg)
	case preVoteReply:
		r.onPreVoteReply(env, from, msg)
	case prepare:
		r.onPrepare(env, from, msg)
	case accept:
		r.onAccept(env, from, msg)
	case promise:
		r.onPromise(env, from, msg)
	case accepted:
		r.onAccepted(env, from, letter.Disk, msg)
	case polled:
		r.onPolled(env, from, letter.Disk, msg)
	case missing:
		r.onMissing(env, from, letter.Disk, msg)
	case refusal:
		r.onRefusal(env, msg)
	case takeOver:
		r.onTakeOver(env, from, msg)
	}
}

// mayVote reports whether the replica answers as an acceptor. A joining replica does, even before
// it knows that it is a member: else two changes in a row could leave a majority of replicas that
// wait to be told by a leader whom they would have to elect.
func (r *replica) mayVote() bool {
	return !r.Over() && (r.role != blank || r.Cfg.Join) && r.Admission.Votes()
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case leaderTimer:
		r.onQuiet(env)
	case campaignTimer:
		r.onCampaign(env)
	case beatTimer:
		r.onBeat(env)
	case quorumTimer:
		r.onQuorumCheck(env)
	}
}

// maybeTakePart makes a follower of a replica that was admitted.
func (r *replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.role != blank || !r.Admission.Admitted() {
		return
	}
	if _, member := r.State.Member(r.Cfg.ID); !member {
		return
	}
	r.becomeFollower(env, 0)
	if r.promised == 0 && !r.Cfg.Join {
		// A new group has no leader that could be disturbed. Whoever is configured to lead asks at
		// once; the others give it time, so that usually nobody stands against it.
		r.quiet = true
		wait := r.Times(campaignSpan * env.Rand.Float64())
		switch r.Cfg.Leader {
		case 0:
		case r.Cfg.ID:
			wait = 0
		default:
			wait += r.Times(courtesy)
		}
		env.Stop(leaderTimer{})
		env.After(wait, campaignTimer{})
	}
}

// onMembers follows a change of the members. The change is applied, so from the next slot on the
// new members are those who vote: advance counts anew after each change, and nothing above the
// change has been proposed before.
func (r *replica) onMembers(env *protocol.Env[smr.Message]) {
	r.maybeTakePart(env)
	if r.role == leader {
		r.followMembers(env)
	}
}

// onRemoved ends the replica's part: it is no member any more.
func (r *replica) onRemoved(env *protocol.Env[smr.Message]) {
	if r.role == leader {
		r.beat(env) // the others can go on when they know that this is decided
		r.stopLeading(env)
	}
	r.role, r.leader = blank, 0
	env.Stop(leaderTimer{})
	env.Stop(campaignTimer{})
}

func (r *replica) status(s *smr.Status) {
	s.Role, s.Leader, s.Ballot, s.Committed = r.role.String(), r.leader, uint64(r.promised), r.commit
	s.Snapshot, s.LogSize = r.log.journal.Snapshot(), r.log.journal.Records()
}

// applyDoubtful executes the whole log, for a group that has lost all other disks. Entries above
// the commit that is on disk count too: they may have been decided, and acknowledged, without this
// disk knowing it.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	for s := r.State.Applied() + 1; s <= r.log.last(); s++ {
		r.State.Apply(s, r.log.at(s).Entry)
		n++
	}
	return n, nil
}

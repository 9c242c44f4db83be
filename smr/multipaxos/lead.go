package multipaxos

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// leadership is what a leader knows. Its zero value is that of a replica that does not lead.
type leadership struct {
	end      smr.Slot    // the last slot that was proposed. Invariant: own <= end, and each match too.
	start    smr.Slot    // earlier leaders decided nothing above start; reads wait until it is applied
	changing smr.Slot    // of an undecided change of the members, 0 if none: nothing is proposed above
	queue    []kit.Entry // taken from clients, not yet given slots
	own      smr.Slot    // the leader's own votes are on its disk up to here
	peers    []*peer     // in the order of the members, without the leader
	learners []*peer     // to be added, being brought up to date; their votes do not count yet
	reads    kit.Rounds
}

// followers returns all that the leader sends to.
func (l *leadership) followers() []*peer {
	if len(l.learners) == 0 {
		return l.peers
	}
	return slices.Concat(l.peers, l.learners)
}

// peer is a follower as its leader sees it.
type peer struct {
	id     protocol.ID
	flow   kit.Flow[smr.Slot]
	match  smr.Slot        // on its disk are the leader's slots up to here. Invariant: match <= flow.Arrived().
	timed  smr.Slot        // the slot whose acknowledgement is being timed; 0 if none
	since  time.Duration   // when that slot was sent
	heard  bool            // since the last onQuorumCheck
	before bool            // it was heard between the two checks before
	asked  time.Duration   // of a learner: when it last said that it waits to be added
	disk   kit.Incarnation // of a learner, present or past: the disk that match is about; 0 of others
}

// stranger reports whether a message is of another disk of a learner than the one whose progress is
// known.
func (p *peer) stranger(disk kit.Incarnation) bool { return p.disk != 0 && p.disk != disk }

// becomeLeader proposes what phase 1 has found in the leader's own ballot, and then what clients
// want. A majority has promised the ballot, so nothing more is decided in lower ones: what they may
// have decided is among the votes found, and ends where those end (start).
func (r *replica) becomeLeader(env *protocol.Env[smr.Message]) {
	c := r.candidacy
	r.candidacy = candidacy{}
	r.role, r.leader, r.quiet = leader, r.Cfg.ID, false
	r.Resting.Wake(env.Now)
	r.Desk.Reset()
	// Its own votes above commit do not count, although they are on disk: they are of lower ballots.
	// Nor does anybody's match, which begins at 0 with each new peer.
	r.lead = leadership{end: r.commit, start: r.commit, own: r.commit}
	env.Stop(campaignTimer{})
	env.Stop(leaderTimer{})
	var entries []kit.Entry
	for _, v := range c.best[r.commit+1-c.low:] {
		entries = append(entries, v.Entry)
		if v.Entry.Kind == kit.ChangeMembers {
			// Nothing above this change was decided, so what is above is dropped. Suppose that a
			// ballot had decided a slot above it. Acceptors leave no gaps, so the majority that
			// voted there had voted in that ballot for the change's slot too, or knew it to be
			// decided. Either way that slot was decided, for the entry that phase 1 has found: this
			// change. But a leader proposes nothing above a change before it knows the change to be
			// decided, and its accept then says so. So that whole majority knew. It meets the one
			// that has promised, and phase 1 would know too.
			break
		}
	}
	r.followMembers(env)
	r.lead.queue = entries
	// Proposed at once, before any call of a client: a slot that phase 1 found a vote for must get
	// that entry and no other. What follows has the slots above, of which phase 1 has shown that no
	// lower ballot decides anything in them.
	r.propose(env)
	r.lead.start = r.lead.end
	env.After(0, beatTimer{})
	env.After(r.Tempo.Times(leaderTimeout), quorumTimer{})
}

// stopLeading forgets what only a leader needs. What it has proposed may still be decided, by a
// later leader that finds it in phase 1. Its clients ask again, and a command that was decided
// twice is executed once: sessions see to it. So nothing has to be called back.
func (r *replica) stopLeading(env *protocol.Env[smr.Message]) {
	r.lead = leadership{}
	r.Transfers.Clear()
	r.Resting.Wake(env.Now)
	r.Desk.Reset()
	env.Stop(beatTimer{})
	env.Stop(quorumTimer{})
	r.Batch.Stop(env)
}

// followMembers makes the leader's peers those of the state. A learner that has become a member
// keeps its match, which from now on is a vote: a learner accepts by the same rules as a member,
// and its accepted says that it has the slots on disk in this ballot. But the vote is that disk's:
// if the member was added with another disk than the learner had, nothing is known of it.
func (r *replica) followMembers(env *protocol.Env[smr.Message]) {
	var peers []*peer
	member := func(id protocol.ID) bool {
		_, ok := r.State.Member(id)
		return ok
	}
	for _, m := range r.State.Members() {
		if m.ID == r.Cfg.ID {
			continue
		}
		disk, _ := r.State.Member(m.ID)
		if p := r.peer(m.ID); p != nil && !p.stranger(disk) {
			peers = append(peers, p)
		} else {
			r.Transfers.Drop(m.ID)
			peers = append(peers, &peer{id: m.ID, flow: kit.NewFlow(r.commit + 1)})
		}
	}
	r.lead.learners = slices.DeleteFunc(r.lead.learners, func(p *peer) bool {
		return member(p.id) || r.State.Removed(p.id)
	})
	for _, p := range r.lead.peers {
		if r.State.Removed(p.id) {
			// From now on it is sent nothing, so it would not learn that its removal is decided.
			r.Admission.SendAhead(env, p.id, kit.Removed{})
		}
	}
	r.lead.peers = peers
	r.dropTransfers()
}

// dropTransfers forgets the transfers to replicas that are not followed any more.
func (r *replica) dropTransfers() {
	for _, id := range r.Transfers.To() {
		if r.peer(id) == nil {
			r.Transfers.Drop(id)
		}
	}
}

// onClient takes what a client wants, or says who leads.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if r.role != leader {
		// Ahead of the disk, as it says nothing about the state: a client that is sent to the wrong
		// replica is sent on from there.
		env.SendAhead(from, kit.Redirect{Leader: r.leaderMember()})
		return
	}
	switch msg := msg.(type) {
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	case kit.ChangeRequest:
		r.onChange(env, from, msg)
	default:
		r.lead.queue = r.Desk.Take(env, from, msg, r.lead.queue)
	}
	if len(r.lead.queue) > 0 {
		r.Soon(env)
	}
}

// onBatch proposes what has come up, and has the followers confirm this leader for the
// queries that have: a query that comes later waits for another round, since the followers' answers
// to this one say nothing about the time after it was asked.
func (r *replica) onBatch(env *protocol.Env[smr.Message]) {
	if r.role == leader {
		r.propose(env)
		r.startPoll(env)
	}
}

func (r *replica) leaderMember() smr.Member {
	for _, m := range r.State.Members() {
		if m.ID == r.leader {
			return m
		}
	}
	return smr.Member{}
}

// propose gives slots to what is queued. Followers are sent the entries while the leader still
// writes them to its own disk. If it crashes in between, it may forget what it proposed, but its
// promise of the ballot is on disk (maybeLead), so it never proposes anything else in this ballot.
// Its own vote counts only once it is on disk, by the same message as the others'.
func (r *replica) propose(env *protocol.Env[smr.Message]) {
	l := &r.lead
	first := l.end + 1
	for len(l.queue) > 0 && l.changing == 0 {
		n := kit.FitEntries(l.queue, min(len(l.queue), r.Cfg.MaxBatch))
		if i := slices.IndexFunc(l.queue[:n], func(e kit.Entry) bool { return e.Kind == kit.ChangeMembers }); i >= 0 {
			// Who votes on the slots above depends on the change, so they wait until it is decided.
			n = i + 1
			l.changing = l.end + smr.Slot(n)
		}
		entries := slices.Clone(l.queue[:n])
		l.queue = l.queue[n:]
		r.log.write(env, acceptRecord{Ballot: r.promised, First: l.end + 1, Commit: r.commit, Entries: entries})
		l.end += smr.Slot(n)
		r.matched = l.end
		for _, p := range l.followers() {
			// Others lack slots before these, or have no room. They get these from pump, in order.
			if p.flow.Next() == l.end-smr.Slot(n)+1 && r.room(p) {
				r.sendAccept(env, p, entries)
			}
		}
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
	if l.end >= first {
		r.Admission.Send(env, r.Cfg.ID, accepted{Ballot: r.promised, Match: l.end})
	}
}

// room reports whether a follower may be sent more before it answers. Without a bound, a follower
// that is slow or away would have all of the log under way to it, far more than its connection
// queues, and what the queue drops would be asked for and sent again. While a snapshot is on its
// way the follower has no use for slots: it takes none before those that the snapshot covers.
func (r *replica) room(p *peer) bool {
	return r.Transfers.Of(p.id) == nil && p.flow.Ahead() < r.Cfg.MaxPending && !p.flow.Full(r.Cfg.MaxUnderwayBytes)
}

// sendAccept sends a follower the slots from its next one on; without entries it is a beat. It
// does not wait for the leader's disk: an accept asserts only that nothing else is proposed in its
// slots in this ballot, and propose says why that survives a crash; what it calls decided is on the
// disks of a majority.
//
// Of the slots under way one at a time is timed, until the follower has acknowledged it, which
// includes its disk: that is how long a round trip takes at present.
func (r *replica) sendAccept(env *protocol.Env[smr.Message], p *peer, entries []kit.Entry) {
	r.Admission.SendAhead(env, p.id, accept{
		Ballot: r.promised, First: p.flow.Next(), Commit: r.commit, Round: r.lead.reads.Round(), Entries: entries,
	})
	if len(entries) == 0 {
		return
	}
	last := p.flow.Next() + smr.Slot(len(entries)) - 1
	p.flow.Sent(env.Now, last, len(entries), kit.CommandBytes(entries))
	if p.timed == 0 {
		p.timed, p.since = last, env.Now
	}
}

// pump sends a follower what it has not been sent, as far as there is room, or the state if its
// next slot has been cut from the log. It may be called at any time: next moves on with what is
// sent, and goes back only if the follower says that something is missing.
func (r *replica) pump(env *protocol.Env[smr.Message], p *peer) {
	for p.flow.Next() <= r.lead.end && r.room(p) {
		first := p.flow.Next()
		if first <= r.log.base {
			r.sendSnapshot(env, p)
			return
		}
		last := min(r.lead.end, first+smr.Slot(r.Cfg.MaxBatch)-1)
		r.sendAccept(env, p, r.log.entries(first, last))
	}
}

func (r *replica) peer(id protocol.ID) *peer {
	for _, p := range r.lead.followers() {
		if p.id == id {
			return p
		}
	}
	return nil
}

// onAccepted counts a vote. Those of other ballots are not for this leader's entries. A match
// beyond the end is of nothing that was proposed. A match never goes back: the follower has what it
// acknowledged on its disk, and a later message that says less was overtaken.
func (r *replica) onAccepted(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m accepted) {
	if r.role != leader || m.Ballot != r.promised || m.Match > r.lead.end {
		return
	}
	if from == r.Cfg.ID {
		r.lead.own = max(r.lead.own, m.Match)
	} else if p := r.peer(from); p != nil && !p.stranger(disk) {
		p.heard = true
		p.match = max(p.match, m.Match)
		if p.timed != 0 && p.match >= p.timed {
			r.Tempo.Saw(env.Now, env.Now-p.since)
			p.timed = 0
		}
		p.flow.Done(p.match)
		p.flow.Skip(p.match)
		if out := r.Transfers.Of(from); out != nil && p.match >= out.Slot() {
			r.Transfers.Drop(from)
		}
		r.pump(env, p)
	}
	r.advance(env)
}

// advance decides what a majority has accepted. The leader has proposed every slot above its commit
// anew in its own ballot, and counts answers of that ballot only. So an entry is never taken for
// decided because a majority holds votes of different, earlier ballots for it, which decide nothing
// [Raft §5.4.2].
//
// A decision may change the members, and with them the majority for the next slot: hence the loop.
func (r *replica) advance(env *protocol.Env[smr.Message]) {
	before := r.commit
	for r.role == leader {
		match := []smr.Slot{r.lead.own}
		for _, p := range r.lead.peers {
			match = append(match, p.match)
		}
		to := min(quorum.KthLargest(match, quorum.Majority(len(match))), r.lead.end)
		if to <= r.commit {
			break
		}
		r.decide(env, to)
		if r.role == leader && r.lead.changing != 0 && r.commit >= r.lead.changing {
			r.lead.changing = 0
			if len(r.lead.queue) > 0 {
				r.Soon(env)
			}
		}
	}
	if r.role != leader || r.commit == before {
		return
	}
	r.answerReads(env)
	if r.commit == r.lead.end {
		r.beat(env) // no later accept says what is decided
	}
}

// onMissing sends again from where a follower's log ends. The follower asks once for each gap, but
// connections break, so the same question may come twice, or after the answer to it.
func (r *replica) onMissing(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m missing) {
	if r.role != leader || m.Ballot != r.promised {
		return
	}
	p := r.peer(from)
	if p == nil || p.stranger(disk) {
		return
	}
	p.heard = true
	if r.Transfers.Of(from) != nil {
		return // it gets all that it misses
	}
	if m.Want == 0 {
		r.sendSnapshot(env, p)
		return
	}
	// A Want outside of this range is old: it has been acknowledged, or will be sent anyhow.
	if m.Want > p.match {
		p.flow.Lost(env.Now, m.Want, r.Tempo.Times(1))
	}
	r.pump(env, p)
}

// onBeat also goes on with what waits for room, or for a transfer: no message is certain to
// come that would give occasion to.
func (r *replica) onBeat(env *protocol.Env[smr.Message]) {
	if r.role != leader || r.Resting.Skips(env) {
		return
	}
	r.beat(env)
	for _, p := range r.lead.followers() {
		r.Transfers.Continue(env, p.id)
		r.pump(env, p)
	}
	r.Resting.NextBeat(env, r.Times(beatEvery))
}

// beat says that the leader is there and what is decided. It has the number of the round that
// queries wait for, so a lost question is repeated with each beat.
func (r *replica) beat(env *protocol.Env[smr.Message]) {
	for _, p := range r.lead.followers() {
		r.sendAccept(env, p, nil)
	}
}

// onQuorumCheck makes the replica stop leading if it cannot reach a majority: others may lead by
// now, and clients should look for them. Safety does not need it, as without a majority the leader
// decides nothing and answers no query; its clients would wait for as long as it is cut off. A
// leader at rest asks its followers nothing.
func (r *replica) onQuorumCheck(env *protocol.Env[smr.Message]) {
	if r.role != leader || r.Resting.Is() {
		return
	}
	heard := 1
	for _, p := range r.lead.peers {
		if p.heard {
			heard++
		}
		p.before, p.heard = p.heard, false
	}
	if heard < quorum.Majority(len(r.lead.peers)+1) {
		r.Tempo.Missed(env.Now)
		r.becomeFollower(env, 0)
		return
	}
	env.After(r.Tempo.Times(leaderTimeout), quorumTimer{})
}

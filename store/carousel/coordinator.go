package carousel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Say T writes at partitions p and q, and both have voted yes. The coordinator has T's commit
// request on its group's record, so it tells the agent at once that T is committed, and records the
// decision afterwards. If it crashes in between, the next leader finds the request, asks p and q
// again, is told yes by both, and commits T as well. Partitions carry a decision out only when it
// is on record (plant "partitions carry out a decision that is not on record").
//
// The rule: a decision may be told early only if it follows from what is durable. That a client has
// gone does not. If such an abort were told before it is on record, the commit request could reach
// the next leader, which would commit T (plant "C10: an abort is told before it is on record").
//
// A commit also waits until its version has passed on all clocks. Otherwise T is told, and then U
// begins at a site whose clock is behind and gets an earlier timestamp: whoever reads between the
// two sees U without T (plant "C16: a commit is told before its time has passed on all clocks").

// coordinator is what the leader of a coordinating group knows beside the group's records: votes,
// and who waits. A new leader begins with nothing, and asks for the votes again.
type coordinator struct{ txns map[store.TxnID]*txn }

// txn is a transaction that a coordinator is at.
type txn struct {
	id      store.TxnID
	agents  []protocol.ID // that wait for the end
	tallies map[partRef]*tally
	asked   bool // its commit request is proposed
	quick   bool // it is decided, by the fast path for all of its parts
	givesUp bool // an abort that does not follow from what is durable is proposed
	// end is the decision, if there is one. It follows from what is durable, or is on record.
	end      *outcome
	proposed bool // the decision, to the group's log
	// passing is the version that is decided once it has passed on all clocks; passed is that of
	// which that is so.
	passing, passed uint64
	left            map[uint32]bool // partitions that have not carried it out; nil: it is not on record yet
	seen            time.Duration   // when something was heard of the client last
	since           time.Duration   // when the coordinator began to wait for what it waits for
}

func (c *coordinator) reset() { *c = coordinator{txns: map[store.TxnID]*txn{}} }

// Of these counts of round trips, the first is how long a client may be silent that still reads;
// the second is after how many a coordinator asks partitions again.
const (
	heartbeats = 8
	askAfter   = 4
)

// txn returns what the coordinator knows of a transaction, and begins with it if that is nothing.
func (s *server) txn(env *protocol.Env[store.Message], id store.TxnID) *txn {
	t := s.txns[id]
	if t == nil {
		t = &txn{id: id, tallies: map[partRef]*tally{}, seen: env.Now, since: env.Now}
		s.txns[id] = t
	}
	return t
}

// addAgent notes that an agent is to be told of the end.
func (t *txn) addAgent(agent protocol.ID) {
	if !slices.Contains(t.agents, agent) {
		t.agents = append(t.agents, agent)
	}
}

// over tells an agent how a transaction has ended of which the group has no record any more, or
// tells that it has one, or nothing.
func (s *server) over(env *protocol.Env[store.Message], to protocol.ID, id store.TxnID) bool {
	if o, ok := s.state.gone.get(id); ok {
		env.Send(to, decision(id, o))
		return true
	}
	if s.state.isGone(id) {
		env.Send(to, store.Decided{ID: id, Verdict: store.Unknown, Reason: store.Old})
		return true
	}
	return false
}

func decision(id store.TxnID, o outcome) store.Decided {
	d := store.Decided{ID: id, Verdict: store.Aborted, Reason: o.reason}
	if o.commit {
		d.Verdict, d.Reason, d.Version = store.Committed, store.NoReason, o.version
	}
	return d
}

// onBegin records which partitions a transaction that still reads prepares at, and that its client
// is there.
func (s *server) onBegin(env *protocol.Env[store.Message], from protocol.ID, m beginRequest) {
	if !s.cfg.Layout.ValidShards(m.Shards) || s.elsewhere(env, from, m.ID) || s.over(env, from, m.ID) {
		return
	}
	t := s.txn(env, m.ID)
	t.seen = env.Now
	if t.end != nil {
		env.Send(from, decision(t.id, *t.end))
		return
	}
	t.addAgent(from)
	if r := s.state.records[m.ID]; r == nil || len(union(r.shards, m.Shards)) > len(r.shards) {
		s.propose(env, begun{m})
	}
}

// wasBegun has the transaction looked after until it ends, however long its record took to come.
func (s *server) wasBegun(env *protocol.Env[store.Message], id store.TxnID) {
	if s.term > 0 && s.state.records[id] != nil {
		s.txn(env, id)
	}
}

// onCommit takes a commit request: the group records it while the partitions are still at their
// votes.
func (s *server) onCommit(env *protocol.Env[store.Message], from protocol.ID, m commitRequest) {
	if !s.validCommit(m) || s.elsewhere(env, from, m.ID) || s.over(env, from, m.ID) {
		return
	}
	t := s.txn(env, m.ID)
	t.seen = env.Now
	if t.end != nil {
		env.Send(from, decision(t.id, *t.end))
		return
	}
	t.addAgent(from)
	if r := s.state.records[m.ID]; !t.asked && (r == nil || r.commit == nil) {
		t.asked, t.since = true, env.Now
		if _, ok := s.propose(env, committing{m}); !ok {
			t.asked = false
		}
	}
}

func (s *server) validCommit(m commitRequest) bool {
	if m.ID.IsZero() || len(m.Parts) == 0 || len(m.Parts) > maxSteps*len(s.where.leads) ||
		store.ValidAccesses(m.Reads, m.Writes) != nil {
		return false
	}
	for _, p := range m.Parts {
		if !s.where.has(p.Shard) || p.Step < 1 || p.Step > maxSteps {
			return false
		}
	}
	return true
}

// onAbort ends a transaction that its client has given up, unless it has asked for a commit before.
func (s *server) onAbort(env *protocol.Env[store.Message], from protocol.ID, m abortRequest) {
	if !s.cfg.Layout.ValidShards(m.Shards) || s.elsewhere(env, from, m.ID) || s.over(env, from, m.ID) {
		return
	}
	s.giveUp(env, s.txn(env, m.ID), m.Shards, store.Fenced)
}

// giveUp aborts a transaction without a commit request. That does not follow from what is durable,
// so it is on record before anybody hears of it. The record of a commit request that came first
// undoes it.
func (s *server) giveUp(env *protocol.Env[store.Message], t *txn, shards []uint32, why store.Reason) {
	if t.end != nil || t.asked || t.givesUp {
		return
	}
	if r := s.state.records[t.id]; r != nil && r.commit != nil {
		return
	}
	_, t.givesUp = s.propose(env, decided{ID: t.id, Reason: why, Shards: union(shards, t.voted()), Alone: true})
}

func (s *server) wasCommitting(env *protocol.Env[store.Message], m committing) {
	if s.term == 0 {
		return
	}
	t := s.txn(env, m.ID)
	t.since = env.Now
	s.maybeDecide(env, t)
}

// onVote takes a partition's word on a part. A partition whose transaction has ended does not know
// yet, or has prepared late; any member that has the end on record tells it, as the leader may be
// one that it cannot hear.
func (s *server) onVote(env *protocol.Env[store.Message], from protocol.ID, m voteMsg) {
	if !s.where.isMember(m.Ref.Shard, from) || m.Ref.Step < 1 || m.Ref.Step > maxSteps {
		return
	}
	end, known := s.ended(m.ID)
	if known {
		s.tellEnd(env, from, m.ID, m.Ref.Shard, end)
	}
	if s.elsewhere(env, from, m.ID) {
		return
	}
	s.where.set(m.Ref.Shard, from)
	if known {
		return
	}
	t := s.txn(env, m.ID)
	b := m.Ballot
	s.tally(t, m.Ref).durable = &b
	s.maybeDecide(env, t)
	r := s.state.records[m.ID]
	if m.Doubt && (r == nil || r.commit == nil && env.Now-t.seen > s.trips(heartbeats)) {
		s.giveUp(env, t, nil, store.Fenced)
	}
}

// onFastVote takes a member's word on a part.
func (s *server) onFastVote(env *protocol.Env[store.Message], from protocol.ID, m fastVote) {
	t, ta := s.tallyOf(env, from, m.Ref, m.ID)
	if t == nil || ta.fast[from].Term > m.Term {
		return
	}
	ta.fast[from] = m
	s.maybeDecide(env, t)
}

// onStoredVote takes a member's word that it has that of its leader on disk. The last of a majority
// makes it the group's.
func (s *server) onStoredVote(env *protocol.Env[store.Message], from protocol.ID, m storedVote) {
	t, ta := s.tallyOf(env, from, m.Ref, m.ID)
	if t == nil || ta.stored[from].At.Term > m.At.Term {
		return
	}
	ta.stored[from] = m
	if b, ok := ta.agreed(); ok && ta.durable == nil {
		ta.durable = &b
		s.maybeDecide(env, t)
	}
}

// tallyOf returns what a member's word on a part counts in, nil if it does not count. The member is
// told if another server is the coordinator: it hears of that from nobody else.
func (s *server) tallyOf(env *protocol.Env[store.Message], from protocol.ID, ref partRef, id store.TxnID) (
	*txn, *tally,
) {
	if !s.where.isMember(ref.Shard, from) || ref.Step < 1 || ref.Step > maxSteps || s.elsewhere(env, from, id) {
		return nil, nil
	}
	if _, known := s.ended(id); known {
		return nil, nil
	}
	t := s.txn(env, id)
	return t, s.tally(t, ref)
}

func (s *server) tally(t *txn, ref partRef) *tally {
	ta := t.tallies[ref]
	if ta == nil {
		ta = &tally{fast: map[protocol.ID]fastVote{}, stored: map[protocol.ID]storedVote{}}
		t.tallies[ref] = ta
	}
	return ta
}

// ended returns how a transaction has ended that the group has on record. The end of one that is
// forgotten has been carried out wherever it had parts: what somebody still has is to be freed.
func (s *server) ended(id store.TxnID) (outcome, bool) {
	if r := s.state.records[id]; r != nil {
		if r.end != nil {
			return *r.end, true
		}
		return outcome{}, false
	}
	if o, ok := s.state.gone.get(id); ok {
		return o, true
	}
	return outcome{reason: store.Old}, s.state.gone.isOld(id)
}

// maybeDecide decides a transaction if what is known is enough, and tells who waits.
func (s *server) maybeDecide(env *protocol.Env[store.Message], t *txn) {
	if t.end != nil {
		return
	}
	ballots := map[partRef]ballot{}
	for ref, ta := range t.tallies { //pure:ok into a map
		if b, durable, ok := ta.ballot(); ok {
			ta.know(durable)
			ballots[ref] = b
		}
	}
	r := s.state.records[t.id]
	var commit *commitRecord
	if r != nil {
		commit = r.commit
	}
	switch v, why, stamp := decide(commit, ballots); v {
	case waits:
		// Nothing that is durable says that a no is the end before there is a commit request: that may
		// not name the part.
		if why, ok := refused(t.parts(), ballots); ok && commit == nil {
			s.giveUp(env, t, nil, why)
		}
		return
	case commits:
		if !s.hasPassed(env, t, stamp) {
			return
		}
		t.end = &outcome{commit: true, version: store.Version{Time: stamp, Client: t.id.Client}}
		t.quick = !slices.ContainsFunc(commit.Parts, func(ref partRef) bool { return !t.tallies[ref].quick })
	case aborts:
		t.end = &outcome{reason: why}
	}
	s.tellAgents(env, t)
	s.record(env, t)
}

// passTimer is when a transaction's version has passed on all clocks.
type passTimer struct{ id store.TxnID }

// passTrips is how far a version is ahead at most, in round trips, because of ceilings.
const passTrips = ceilingMargin + ceilingStep + 1

// hasPassed reports whether a version has passed on all clocks, and else has the decision wait
// until it has: whoever begins when a transaction has been told gets a later timestamp. Votes take
// longer than that, unless clocks may be far apart. If they are further apart than they may be, no
// wait is long enough; a coordinator that finds its own clock to be off waits as long as others may
// be behind it.
func (s *server) hasPassed(env *protocol.Env[store.Message], t *txn, version uint64) bool {
	switch {
	case t.passed >= version:
		return true
	case t.passing >= version:
		return false
	}
	left := time.Duration(version) + s.cfg.MaxOffset - max(env.Now, 0)
	if far := s.trips(passTrips) + 2*s.cfg.MaxOffset; version > maxStamp || left > far || s.clocks.off() {
		left = 2 * s.cfg.MaxOffset
	}
	if left <= 0 {
		return true
	}
	t.passing = version
	env.After(left, passTimer{t.id})
	return false
}

// passed decides what has waited for its time to pass.
func (s *server) passed(env *protocol.Env[store.Message], id store.TxnID) {
	if t := s.txns[id]; t != nil && s.term > 0 {
		t.passed = max(t.passed, t.passing)
		s.maybeDecide(env, t)
	}
}

func (s *server) tellAgents(env *protocol.Env[store.Message], t *txn) {
	for _, to := range t.agents {
		d := decision(t.id, *t.end)
		d.Fast = t.quick
		env.Send(to, d)
	}
	t.agents = nil
}

// record has the group record a decision. Partitions are told when it has: a coordinator that takes
// over does not ask them again then, and the version of what is written is the same for all.
func (s *server) record(env *protocol.Env[store.Message], t *txn) {
	_, t.proposed = s.propose(env, decided{ID: t.id, Commit: t.end.commit, Version: t.end.version, Reason: t.end.reason,
		Shards: t.voted()})
}

// parts returns the parts on which somebody has said a word.
func (t *txn) parts() []partRef {
	return slices.SortedFunc(maps.Keys(t.tallies), func(a, b partRef) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Step, b.Step))
	})
}

// voted returns the partitions of these parts.
func (t *txn) voted() (shards []uint32) {
	for _, ref := range t.parts() {
		shards = union(shards, []uint32{ref.Shard})
	}
	return shards
}

// wasDecided has the partitions carry out a decision that is on record.
func (s *server) wasDecided(env *protocol.Env[store.Message], id store.TxnID) {
	r := s.state.records[id]
	if r == nil {
		delete(s.txns, id) // it has ended before, as who asks again is told
	}
	if s.term == 0 || r == nil || r.end == nil {
		return
	}
	t := s.txn(env, id)
	if t.left != nil {
		return
	}
	if t.end != nil && t.end.commit != r.end.commit {
		panic(fmt.Sprintf("carousel: transaction %v was decided as %+v, and is on record as %+v", id, *t.end, *r.end))
	}
	t.end, t.left, t.since = r.end, map[uint32]bool{}, env.Now
	s.tellAgents(env, t)
	for _, k := range r.shards {
		t.left[k] = true
	}
	for _, k := range r.shards {
		s.tellEnd(env, s.where.leader(k), id, k, *r.end)
	}
	s.maybeDone(env, t)
}

// tellEnd tells a member of a partition, its leader as far as is known, how a transaction has
// ended.
func (s *server) tellEnd(
	env *protocol.Env[store.Message], to protocol.ID, id store.TxnID, shard uint32, o outcome,
) {
	m := finish{ID: id, Coord: s.self, Commit: o.commit, Version: o.version, Reason: o.reason}
	if r := s.state.records[id]; r != nil && r.commit != nil && o.commit {
		for _, w := range r.commit.Writes {
			if uint32(s.cfg.Layout.ShardOf(w.Key)) == shard {
				m.Writes = append(m.Writes, w)
			}
		}
	}
	env.Send(to, m)
}

func (s *server) onFinished(env *protocol.Env[store.Message], from protocol.ID, m finished) {
	t := s.txns[m.ID]
	if !s.where.isMember(m.Shard, from) || t == nil || t.left == nil {
		return
	}
	s.where.set(m.Shard, from)
	delete(t.left, m.Shard)
	s.maybeDone(env, t)
}

// maybeDone has the group forget a transaction that all partitions have carried out.
func (s *server) maybeDone(env *protocol.Env[store.Message], t *txn) {
	if len(t.left) == 0 {
		s.propose(env, done{t.id})
	}
}

// finishAgain tells another leader of a partition what it has to carry out, or what is about one
// transaction.
func (s *server) finishAgain(env *protocol.Env[store.Message], shard uint32, of store.TxnID) {
	for _, id := range slices.SortedFunc(maps.Keys(s.txns), store.TxnID.Compare) {
		if t := s.txns[id]; t.left[shard] && (of.IsZero() || id == of) {
			s.tellEnd(env, s.where.leader(shard), id, shard, *t.end)
		}
	}
}

// takeOver goes on with what the group's earlier leaders have left, as a participant and as a
// coordinator.
func (s *server) takeOver(env *protocol.Env[store.Message]) {
	for _, id := range s.pendingParts() {
		s.vote(env, id, s.state.parts[id].coord, false)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.state.records), store.TxnID.Compare) {
		switch r := s.state.records[id]; {
		case r.end != nil:
			s.wasDecided(env, id)
		case r.commit != nil:
			s.wantVotes(env, s.txn(env, id), r, false)
		default:
			s.txn(env, id)
		}
	}
}

// wantVotes asks partitions for the votes that a decision lacks: their leaders, or all members.
func (s *server) wantVotes(env *protocol.Env[store.Message], t *txn, r *txnRecord, all bool) {
	for _, ref := range r.commit.Parts {
		if ta := t.tallies[ref]; ta != nil && ta.durable != nil {
			continue
		}
		for _, to := range s.where.whom(ref.Shard, all) {
			env.Send(to, voteWanted{Part: partID{t.id, ref.Step}, Coord: s.self})
		}
	}
}

// sweepRecords looks at transactions that wait for something.
func (s *server) sweepRecords(env *protocol.Env[store.Message]) {
	for _, id := range slices.SortedFunc(maps.Keys(s.txns), store.TxnID.Compare) {
		t, r := s.txns[id], s.state.records[id]
		waits := env.Now - t.since
		late := waits > s.trips(askAfter)
		all := s.askAll(waits)
		switch {
		case t.left != nil:
			if !late {
				continue
			}
			for _, k := range slices.Sorted(maps.Keys(t.left)) {
				for _, to := range s.where.whom(k, all) {
					s.tellEnd(env, to, id, k, *t.end)
				}
			}
			s.maybeDone(env, t)
		case t.end != nil:
			if !t.proposed || late {
				s.record(env, t)
			}
		case r != nil && r.commit != nil:
			if late {
				s.wantVotes(env, t, r, all)
			}
		case r != nil:
			if env.Now-t.seen > s.trips(heartbeats) {
				s.giveUp(env, t, nil, store.Fenced)
			}
		case waits > s.trips(5*askAfter):
			delete(s.txns, id) // votes for what nobody has asked for: their partitions ask again
		}
	}
}

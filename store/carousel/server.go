package carousel

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// maxSteps is how many parts a transaction has at a partition at most.
const maxSteps = 16

// sweepTimer is when a leader looks at what has been open for long.
type sweepTimer struct{}

// server is the node of one partition at one site: a member of the partition's group and, while it
// leads, the group's participant and coordinator.
type server struct {
	cfg   store.Config
	place store.Place
	self  uint32 // the partition
	fast  bool
	group *kit.Member
	state *state
	where directory

	// term is that in which it leads and serves; 0: it does not. It serves once the state has all
	// that earlier leaders have committed and, on the fast path, all that they may have prepared.
	term uint64
	participant
	coordinator
	snapshots
	closing
	wanting wanting
	clocks  clocks
	probes  int // sweeps until clocks are measured again
	list    fastList

	// What is not prepared yet:
	ordering  ordering
	reserving reserving
}

// newServer returns a server. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config, mode variant) (*server, error) {
	return newServerOf(cfg, mode, 0, remembered)
}

// newServerOf returns a server, whose group keeps so many entries in its log, 0 being what package
// smr says, and which remembers so many ended transactions.
func newServerOf(cfg store.Config, mode variant, logEntries, remembers int) (*server, error) {
	cfg, p, err := kit.ServerConfig("carousel", cfg)
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, place: p, self: uint32(p.Index), fast: mode.fast(), state: newState(cfg.Applied, remembers),
		where: newDirectory(cfg.Layout)}
	s.clocks = newClocks(cfg, p.Site)
	s.ordering, s.reserving = newOrdering(cfg), newReserving(cfg)
	s.participant.reset()
	s.coordinator.reset()
	s.snapshots, s.closing = s.newSnapshots(0), newClosing(0, 0)
	hooks := raft.Hooks[store.Message]{Committed: s.committed, Leads: s.leads, Current: s.current, Follows: s.follows}
	if mode == directMode {
		hooks.Stored = s.stored
	}
	s.group, err = kit.NewMember(cfg, p, kit.MemberConfig{
		Machine: s.state, Hooks: hooks, Prefix: groupPrefix, LogEntries: logEntries,
		Serves: func() bool { return s.term > 0 },
	})
	return s, err
}

// groupPrefix is what the group's keys begin with.
const groupPrefix = "raft/"

// Start implements protocol.Node.
func (s *server) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	s.list.load(env)
	s.group.Start(env, log)
	env.After(s.cfg.RoundTrip, sweepTimer{})
}

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	if m, ok := msg.(store.StatusQuery); ok && from == protocol.App {
		s.onStatus(env, m)
	}
	if s.group.Receive(env, from, msg) || from == protocol.App {
		return
	}
	switch m := msg.(type) {
	case store.ReadRequest:
		s.onRead(env, from, m)
	case store.PageRequest:
		s.onPage(env, from, m)
	case snapshotRequest:
		s.onSnapshot(env, from, m)
	case closedRequest:
		s.onClosed(env, from, m)
	case timeRequest:
		onTimeRequest(env, from, m)
	case timeReply:
		s.clocks.took(env, from, m)
	case prepareRequest:
		s.onPrepare(env, from, m)
	case checkRequest:
		s.onCheck(env, from, m)
	case voteWanted:
		s.onVoteWanted(env, from, m)
	case finish:
		s.onFinish(env, from, m)
	case beginRequest:
		s.onBegin(env, from, m)
	case commitRequest:
		s.onCommit(env, from, m)
	case abortRequest:
		s.onAbort(env, from, m)
	case voteMsg:
		s.onVote(env, from, m)
	case fastVote:
		s.onFastVote(env, from, m)
	case storedVote:
		s.onStoredVote(env, from, m)
	case finished:
		s.onFinished(env, from, m)
	case closeWanted:
		s.onCloseWanted(env, from, m)
	case moved:
		s.onMoved(env, from, m)
	case listWanted:
		s.onListWanted(env, from, m)
	case listReply:
		s.onListReply(env, from, m)
	}
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	if s.group.Expire(env, t) {
		return
	}
	switch t := t.(type) {
	case sweepTimer:
		env.After(s.cfg.RoundTrip, sweepTimer{})
		s.sweep(env)
	case passTimer:
		s.passed(env, t.id)
	case kit.ArrivalTimer:
		s.inOrder(env, s.ordering.Due(env))
	case kit.ReserveTimer:
		s.reserving.Expire(env, t)
		s.wakeTurns(env)
	}
}

// elsewhere tells whoever takes this server for the partition's serving leader that it is not.
func (s *server) elsewhere(env *protocol.Env[store.Message], from protocol.ID, id store.TxnID) bool {
	if s.term > 0 {
		return false
	}
	leader := s.group.Leader().ID
	if leader == s.cfg.ID {
		leader = 0 // it does not serve yet
	}
	env.Send(from, moved{Shard: s.self, Leader: uint32(leader), ID: id})
	return true
}

// onMoved takes note that another server leads a partition, and says again to it what waits for
// it. If that is known by now, what was said of the transaction went to the wrong server alone.
func (s *server) onMoved(env *protocol.Env[store.Message], from protocol.ID, m moved) {
	switch news := s.where.correct(m); {
	case s.term == 0 || !s.where.isMember(m.Shard, from):
	case news:
		s.voteAgain(env, m.Shard, store.TxnID{})
		s.finishAgain(env, m.Shard, store.TxnID{})
	case from != s.where.leader(m.Shard):
		s.voteAgain(env, m.Shard, m.ID)
		s.finishAgain(env, m.Shard, m.ID)
	}
}

// propose has the group agree on an entry. ok is false if it cannot: whoever asked asks again.
func (s *server) propose(env *protocol.Env[store.Message], entry store.Message) (at raft.Position, ok bool) {
	b, err := s.state.format.Append(nil, entry)
	if err != nil {
		panic(fmt.Sprintf("carousel: an entry cannot be encoded: %v", err)) // it is of the format
	}
	return s.group.Propose(env, b)
}

// committed is called with each entry when it is applied.
func (s *server) committed(env *protocol.Env[store.Message], at raft.Position, entry []byte) {
	m, _ := s.state.format.Decode(entry)
	switch m := m.(type) {
	case prepared:
		over := s.state.isOver(m.Part.ID)
		if s.list.drop(env, m.Part); over {
			s.list.dropAll(env, m.Part.ID)
		}
		s.wasPrepared(env, m)
		if over {
			s.wake(env, m.Part.ID)
		}
	case ended:
		s.list.dropAll(env, m.ID)
		s.wasEnded(env, m)
		s.wake(env, m.ID)
	case raised:
		s.reads.Recorded(m.Ceiling)
		s.wake(env, store.TxnID{})
	case closed:
		s.wasClosed(env, m)
	case checked:
		s.wasChecked(env, at, m)
	case done:
		delete(s.txns, m.ID)
	case begun:
		s.wasBegun(env, m.ID)
	case committing:
		s.wasCommitting(env, m)
	case decided:
		s.wasDecided(env, m.ID)
	}
}

// leads is called when the member is elected. What earlier leaders have committed is not all there
// yet.
func (s *server) leads(env *protocol.Env[store.Message], term uint64) {
	s.follows(env)
	s.where.set(s.self, s.cfg.ID)
	if s.fast {
		s.askLists(env, term)
	}
}

// current is called when it is.
func (s *server) current(env *protocol.Env[store.Message], term uint64) {
	if s.fast {
		s.list.current = true
		s.maybeRecover(env, term)
		return
	}
	s.serve(env, term)
}

// serve begins to serve as the leader. All that may have been read is below the ceiling, and what
// is prepared from now on above it.
func (s *server) serve(env *protocol.Env[store.Message], term uint64) {
	s.term = term
	s.snapshots = s.newSnapshots(s.state.values.Ceiling(s.group.State(env)))
	s.closing = newClosing(s.closedAt(env), env.Now)
	s.takeOver(env)
}

// follows is called when the member leads no more: what it was about to have agreed on is agreed on
// by others, or not.
func (s *server) follows(*protocol.Env[store.Message]) {
	s.term = 0
	s.participant.reset()
	s.coordinator.reset()
	s.snapshots, s.closing = s.newSnapshots(0), newClosing(0, 0)
	s.list.stopRecovery()
}

// sweep looks at what has been open for long.
func (s *server) sweep(env *protocol.Env[store.Message]) {
	if s.term > 0 {
		s.sweepParts(env)
		s.sweepRecords(env)
		s.sweepSnapshots(env)
		s.sweepClosed(env)
		s.resign(env)
	}
	s.sweepList(env)
	s.sweepClaims(env)
	if s.probes--; s.probes < 0 {
		s.probes = probeEvery - 1
		s.clocks.ask(env)
	}
}

// resign has another site lead whose clock is right, if the own one is so far behind that new
// transactions are refused as ahead of time: nobody could write to the partition.
func (s *server) resign(env *protocol.Env[store.Message]) {
	has := func(site int) bool { return s.cfg.Layout.Sites[site].Has(s.place.Index) }
	if site := s.clocks.behind(s.cfg.MaxAhead, s.cfg.Layout, has); site != store.NoSite {
		s.group.HandOver(env, site)
	}
}

// trips returns how long so many round trips are.
func (s *server) trips(n int) time.Duration { return time.Duration(n) * s.cfg.RoundTrip }

func (s *server) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	st := s.group.Status(env, m.Ref)
	st.Txns, st.Locks = len(s.state.ends.ends)+len(s.state.parts), len(s.state.locks)
	st.Old, st.Undecided = s.state.ends.old, len(s.state.parts)
	st.Reservations, st.Waiting = s.reserving.Len(), s.reserving.waits
	if s.cfg.ByArrival {
		order := s.ordering.Status()
		st.Order = &order
	}
	clock := s.clocks.status()
	clock.Leads, clock.Ceiling = s.term > 0, uint64(s.state.values.Ceiling(s.group.State(env)))
	st.Clock = &clock
	for id := range s.state.parts { //pure:ok the least of all
		if st.OldestUndecided.IsZero() || st.OldestUndecided.After(id.ID) {
			st.OldestUndecided = id.ID
		}
	}
	env.Send(protocol.App, st)
}

// Check implements protocol.Checked.
func (s *server) Check() error {
	locks := locks{}
	for _, p := range s.state.parts { //pure:ok any broken one is an error
		if !s.state.hasYes(p.id.ID) || locks.conflict(p.id.ID, p.ballot.footprint) {
			return fmt.Errorf("carousel: server %d: part %v is pending as %+v", s.cfg.ID, p.id, *p)
		}
		if _, over := s.state.ends.get(p.id.ID); over {
			return fmt.Errorf("carousel: server %d: part %v is pending, and its transaction has ended", s.cfg.ID, p.id)
		}
		locks.add(p.id.ID, p.ballot.footprint)
	}
	if len(locks) != len(s.state.locks) {
		return fmt.Errorf("carousel: server %d: %d keys are locked, want %d", s.cfg.ID, len(s.state.locks), len(locks))
	}
	if err := s.list.check(); err != nil {
		return fmt.Errorf("carousel: server %d: %w", s.cfg.ID, err)
	}
	for _, err := range []error{s.ordering.Check(), s.reserving.Check()} {
		if err != nil {
			return fmt.Errorf("carousel: server %d: %w", s.cfg.ID, err)
		}
	}
	return s.group.Check()
}

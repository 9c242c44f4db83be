package str

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/mvcc"
)

// server is the node of one shard at one site: a member of the shard's group, which serves reads of
// snapshots whether it leads or not.
type server struct {
	cfg   store.Config
	place store.Place
	self  uint32 // the shard
	mode  variant
	group *kit.Member
	state *group

	reads *mvcc.Reads
	// shown are the reads at coordinators, of what was not final then. Nobody has a ceiling there.
	shown *mvcc.Reads
	// noted is the latest snapshot in which any key may have been read elsewhere, at a coordinator or
	// before a restart, or that was copied: commits are above it.
	noted clock.Stamp
	held  map[store.TxnID]*held
	byKey map[store.Key][]*held
	// gaveWay are tentative transactions that have given way, with those that wait for them to be seen
	// no more: see held.before.
	gaveWay map[store.TxnID][]store.TxnID
	// logged are those of held whose entry is in the log and was not applied, in its order.
	logged []*held
	waits  waits
	asked  kit.Questions
	parked []parked // questions that wait for a leader
	sweeps int
	// proposed are the transactions that this leader has proposed to end, and fenced those that it
	// has proposed to refuse unless they are prepared.
	proposed, fenced map[store.TxnID]bool
	// doubted are those that it has proposed to abort unless their clients turn out to be right: they
	// may end, and need not.
	doubted map[store.TxnID]bool
	horizon clock.Stamp // the latest that it has proposed
	// admitted and dropped are the indices of the latest entries, of those that this leader has
	// proposed and not carried out, which count a server as a reader, or do without it.
	admitted, dropped map[protocol.ID]uint64
	// ceiling is the latest that it has proposed: the floor of what comes after a drop is not lower.
	ceiling clock.Stamp
	// raised is when a ceiling was last asked for: of the leader or, if this is the leader, by
	// anybody.
	raised time.Duration
	copies copies
	opened map[store.TxnID]time.Duration
	away   map[protocol.ID]time.Duration // how long members take to answer this one when it leads
}

type (
	// sweepTimer is when a server looks for what has been open for long.
	sweepTimer struct{}
	// lateTimer is when reads are tried again that wait for the server's clock.
	lateTimer struct{}
)

const (
	// leaseTrips is how many round trips ahead ceilings are raised. A member that is not heard of any
	// more serves no later snapshots.
	leaseTrips = 4
	// tellTrips is after how many round trips a member says again that it serves reads. For warmTrips
	// after that the leader raises the ceiling ahead of reads; later, the first one waits for it.
	tellTrips = 8
	warmTrips = 256
	// maxReadKeys is how many keys' latest reads a server remembers. What is forgotten counts as a
	// read of all keys.
	maxReadKeys = 100_000
	// orphanTrips is after how many round trips another coordinator finishes a prepared transaction:
	// one at the first site. Those of later sites wait for longer.
	orphanTrips = 12
	// suspectTrips is the same if the transaction's own coordinator is at a site that is silent.
	suspectTrips = 4
	// missAfter is after how long a group misses its leader: see raft.PartConfig.Patience. It does
	// without a reader after as long, but not for more than deafTrips round trips of silence.
	missAfter = time.Second / 2
	deafTrips = 2
	// tentativeTrips is after how many round trips the group refuses what is certified at the site
	// only and whose coordinator is silent, releasedTrips if it has given way, and nobody sees it.
	tentativeTrips = 24
	releasedTrips  = 4
)

// newServer returns a server. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config, mode variant) (*server, error) {
	cfg, p, err := kit.ServerConfig("str", cfg)
	if err != nil {
		return nil, err
	}
	if err := validReaders(cfg); err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, place: p, self: uint32(p.Index), mode: mode, held: map[store.TxnID]*held{},
		byKey: map[store.Key][]*held{}, waits: newWaits(), asked: kit.Questions{},
		proposed: map[store.TxnID]bool{}, fenced: map[store.TxnID]bool{}, doubted: map[store.TxnID]bool{},
		gaveWay: map[store.TxnID][]store.TxnID{}, dropped: map[protocol.ID]uint64{},
		admitted: map[protocol.ID]uint64{}, opened: map[store.TxnID]time.Duration{},
		away:  map[protocol.ID]time.Duration{},
		state: newGroup(cfg.Applied, mode.remembers())}
	s.state.seen = mode.seen
	s.group, err = kit.NewMember(cfg, p, kit.MemberConfig{
		Machine: s.state, Prefix: groupPrefix, LogEntries: mode.logEntries, Patience: missAfter,
		Message: func(g kit.Grouped) store.Message { return grouped{g, uint32(p.Index)} },
		Hooks: raft.Hooks[store.Message]{Stored: s.stored, Committed: s.committed, Leads: s.leads, Current: s.current,
			Follows: s.follows},
	})
	return s, err
}

// Start implements protocol.Node.
func (s *server) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	reads, err := mvcc.NewReads(0, leaseTrips*s.cfg.RoundTrip/2, maxReadKeys)
	if err != nil {
		panic(err) // the numbers are right
	}
	s.reads = reads
	if s.shown, err = mvcc.NewReads(0, 0, maxReadKeys); err != nil {
		panic(err) // likewise
	}
	s.shown.Recorded(math.MaxInt64)
	s.loadOwn(env)
	s.group.Start(env, log)
	s.takeOver(env)
	env.After(s.cfg.RoundTrip/2, sweepTimer{})
}

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	s.waits.since = env.Now
	if m, ok := msg.(store.StatusQuery); ok && from == protocol.App {
		s.onStatus(env, m)
	}
	if m, ok := msg.(grouped); ok && m.Shard != s.self {
		return
	}
	if m, ok := msg.(store.Replace); ok && from == protocol.App && s.mayReplace(env, m) {
		return
	}
	if s.group.Receive(env, from, msg) || from == protocol.App {
		s.after(env)
		return
	}
	switch m := msg.(type) {
	case readAt:
		s.onRead(env, from, m)
	case store.PageRequest:
		s.onPage(env, from, m)
	case ping:
		env.Send(from, pong(m))
	case pong:
		s.onPong(env, from, m)
	case store.ReadRequest:
		s.onProbe(env, from, m)
	case certify:
		if m.Shard == s.self {
			s.onCertify(env, from, m)
		}
	case release:
		if m.Shard == s.self {
			s.onRelease(env, from, m)
		}
	case kit.Ask:
		if m.Shard == s.self {
			s.onAsk(env, from, m)
		}
	case wordWanted:
		if m.Shard == s.self {
			s.onWordWanted(env, from, m)
		}
	case outcome:
		if m.Shard == s.self {
			s.onOutcome(env, m)
		}
	case raise:
		if m.Shard == s.self {
			s.onRaise(env, from, m)
		}
	case kept:
		if p := s.state.open[m.ID]; m.Shard == s.self && p != nil && p.part.Origin == from {
			s.opened[m.ID] = env.Now
		}
	}
	s.after(env)
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t.(type) {
	case sweepTimer:
		env.After(s.cfg.RoundTrip/2, sweepTimer{})
		s.dropSilent(env)
		if s.sweeps++; s.sweeps%2 == 0 {
			s.sweep(env)
		}
	case lateTimer:
		s.tryReads(env)
	default:
		s.group.Expire(env, t)
	}
	s.after(env)
}

// after ends each call: a state that was replaced is taken over, and what waited for keys that were
// touched, or for a leader, is tried again.
func (s *server) after(env *protocol.Env[store.Message]) {
	s.takeOver(env)
	s.tryAgain(env)
	s.askAgain(env)
}

// propose has the group agree on a command; ok is false if it cannot now.
func (s *server) propose(env *protocol.Env[store.Message], command store.Message) (at raft.Position, ok bool) {
	if len(s.asked) >= s.cfg.MaxTxns {
		return at, false
	}
	if at, ok = s.group.Propose(env, kit.Encoded(s.state.format, command)); !ok {
		return at, false
	}
	switch m := command.(type) {
	case decide:
		s.isToEnd(m)
	case fence:
		s.fenced[m.ID] = true
	case ceil:
		s.horizon, s.ceiling = max(s.horizon, m.Horizon), max(s.ceiling, m.Ceiling)
	case reader:
		s.isToServe(m, at.Index)
	}
	return at, true
}

// committed answers who asked for a command, and takes note of what it has done.
func (s *server) committed(env *protocol.Env[store.Message], at raft.Position, command []byte) {
	s.takeOver(env) // first: what follows goes by what is prepared, and was read, in that state
	r := s.state.results[0]
	s.state.results = s.state.results[1:]
	m, _ := s.state.format.Decode(command)
	switch m := m.(type) {
	case prepare:
		s.wasPrepared(env, at, m.Part, r)
	case decide:
		s.ended(m, r)
		s.wasShown(m.ID, m.Read)
		s.isOver(env, m.ID, r)
	case fence:
		delete(s.fenced, m.ID)
		s.isOver(env, m.ID, r)
	case ceil:
		s.reads.Recorded(s.state.values.Ceiling(s.group.State(env)))
		s.tryReads(env)
	case reader:
		s.serves(m, at.Index)
		if m.Serves && m.Server == s.cfg.ID {
			s.servesAgain(env)
		}
		if !m.Serves {
			s.doesWithout(env, m.Server)
		}
		s.waits.touchAll()
	}
	s.applied(env, at)
	if q, ok := s.asked.Carried(at); ok {
		env.Send(q.From, told{q.Ref, r})
	}
}

// mayReplace stops a server that is to leave the group from serving reads, before it leaves: the
// server that has left may be the last to know. It reports whether the replacement has to wait.
func (s *server) mayReplace(env *protocol.Env[store.Message], m store.Replace) bool {
	l := s.cfg.Layout
	if !s.group.Current() || min(m.From, m.To) < 0 || max(m.From, m.To) >= len(l.Sites) {
		return false
	}
	goes, stays := l.Sites[m.From].Shards[s.self], l.Sites[m.To].Shards[s.self]
	if m.Back {
		goes, stays = stays, goes
	}
	b := s.state.books
	if slices.Contains(b.leaving, goes) && !slices.Contains(b.leaving, stays) {
		for _, h := range s.held { //pure:ok any one is a reason
			if h.stage != tentative && slices.Contains(h.part.Readers, goes) {
				env.Send(protocol.App, store.Replacing{Ref: m.Ref, Leads: true,
					Reason: "transactions may need the old server's word"})
				return true
			}
		}
		return false
	}
	s.propose(env, reader{Server: goes, Leaves: true})
	if slices.Contains(b.leaving, stays) {
		s.propose(env, reader{Server: stays, Serves: true, Leaves: true})
	}
	env.Send(protocol.App, store.Replacing{Ref: m.Ref, Leads: true, Reason: "the old server still serves reads"})
	return true
}

// leads has a new leader do without the one before, if that was silent: its word would be waited
// for. Whoever is to finish what that one has left waits for a leader's word.
func (s *server) leads(env *protocol.Env[store.Message], _ uint64) {
	if id, at := s.group.LastLed(); env.Now-at > s.cfg.RoundTrip {
		s.doWithout(env, id)
	}
	for _, h := range s.all() {
		for _, to := range h.wanted {
			if h.stage != tentative && len(h.before) == 0 {
				s.sayTo(env, to, h)
			}
		}
	}
}

// doWithout has the group count a member as no reader any more, if it is one.
func (s *server) doWithout(env *protocol.Env[store.Message], id protocol.ID) {
	if members, _ := s.group.Members(); id != s.cfg.ID && slices.Contains(s.readers(members), id) {
		s.propose(env, reader{Server: id})
	}
}

// current has a new leader raise the ceiling, as if somebody had asked.
func (s *server) current(env *protocol.Env[store.Message], _ uint64) {
	s.raised = env.Now
	s.copies.lead(env.Now)
}

// follows sends whoever has asked to the new leader.
func (s *server) follows(env *protocol.Env[store.Message]) {
	s.asked.Elsewhere(env, s.group.Leader().ID, s.waits.dropPrepares()...)
	clear(s.proposed)
	clear(s.fenced)
	clear(s.doubted)
	clear(s.admitted)
	clear(s.dropped)
	clear(s.opened)
	s.horizon, s.ceiling = 0, 0
	s.reads.Failed()
}

// sweep has coordinators finish what has been open for long, the group refuse tentative
// transactions that were given up, and asks for this member to serve reads again if it does not.
func (s *server) sweep(env *protocol.Env[store.Message]) {
	s.waits.dropOld(env.Now - waitTrips*s.cfg.RoundTrip)
	for _, r := range s.waits.high {
		if m, ok := r.msg.(readAt); ok {
			s.wantCeiling(env, m.At)
		}
	}
	s.sweepTentative(env)
	_, leads := s.group.Leads()
	if member, _ := s.group.Standing(); member && slices.Contains(s.state.books.deaf, s.cfg.ID) {
		if leader := s.group.Leader().ID; leader != 0 && leader != s.cfg.ID {
			env.Send(leader, raise{Shard: s.self, Admit: true})
		} else if leads && s.group.Current() {
			s.propose(env, reader{Server: s.cfg.ID, Serves: true})
		}
	}
	if !leads {
		clear(s.opened)
		return
	}
	if s.group.Current() {
		s.chooseReaders(env)
	}
	if s.group.Current() && env.Now-s.raised < warmTrips*s.cfg.RoundTrip {
		// a round trip early: members hear of it when the leader has heard of them
		s.raise(env, clock.Stamp(env.Now+s.cfg.RoundTrip))
	}
	seen := map[store.TxnID]time.Duration{}
	for _, id := range s.openIDs() {
		at, ok := s.opened[id]
		if !ok {
			at = env.Now
		}
		seen[id] = at
		s.isOpen(env, s.state.open[id].part, env.Now-at)
	}
	s.opened = seen
}

// dropSilent has a leader's group do without readers that it has not heard for long.
func (s *server) dropSilent(env *protocol.Env[store.Message]) {
	if !s.group.Current() {
		return
	}
	members, _ := s.group.Members()
	for _, id := range members {
		if s.isSilent(env, id) {
			s.doWithout(env, id)
		}
	}
}

// isOpen has coordinators finish a transaction that has been open for long.
func (s *server) isOpen(env *protocol.Env[store.Message], p part, open time.Duration) {
	near := s.cfg.Layout.Coordinator(s.place.Site, p.ID)
	switch {
	case open > time.Duration(orphanTrips+4*s.place.Site)*s.cfg.RoundTrip:
		env.Send(near, orphan{p})
		return
	case open > orphanTrips/2*s.cfg.RoundTrip:
		env.Send(p.Origin, orphan{p})
	}
	if near != p.Origin && (open > suspectTrips*s.cfg.RoundTrip || open > 0 && s.siteIsSilent(env, p.Origin)) {
		env.Send(near, suspect{p})
	}
}

// siteIsSilent reports whether a coordinator is at a site whose member of the group this leader has
// not heard for long.
func (s *server) siteIsSilent(env *protocol.Env[store.Message], of protocol.ID) bool {
	i := siteOf(s.cfg.Layout, of)
	return i >= 0 && s.cfg.Layout.Sites[i].Has(int(s.self)) && s.isSilent(env, s.cfg.Layout.Sites[i].Shards[s.self])
}

// siteOf returns the site of a coordinator, less than 0 if it is none.
func siteOf(l store.Layout, coordinator protocol.ID) int {
	return slices.IndexFunc(l.Sites, func(s store.Site) bool { return slices.Contains(s.Coordinators, coordinator) })
}

// isToEnd takes note that this leader has proposed to end a transaction, for sure or perhaps.
func (s *server) isToEnd(m decide) {
	if m.Held {
		s.doubted[m.ID] = true
	} else {
		s.proposed[m.ID] = true
	}
	s.ceiling = max(s.ceiling, m.Read)
	if h := s.held[m.ID]; h != nil {
		s.touch(h)
	}
}

// ended takes note that such an entry was carried out. What goes on is waited for no longer.
func (s *server) ended(m decide, r result) {
	if !m.Held {
		delete(s.proposed, m.ID)
		return
	}
	delete(s.doubted, m.ID)
	if h := s.held[m.ID]; h != nil && r.State == prepared {
		s.touch(h)
	}
}

// isToServe takes note that this leader has proposed an entry about a reader.
func (s *server) isToServe(m reader, index uint64) {
	switch {
	case !m.Serves:
		s.dropped[m.Server] = index
	case m.Leaves || !slices.Contains(s.state.books.leaving, m.Server): // else it asks in vain
		s.admitted[m.Server] = index
	}
}

// serves takes note that such an entry was carried out. There may be later ones.
func (s *server) serves(m reader, index uint64) {
	for _, pending := range []map[protocol.ID]uint64{s.admitted, s.dropped} {
		if pending[m.Server] <= index {
			delete(pending, m.Server)
		}
	}
}

// serving returns those of a group's members whose words count, as far as is known: all that are
// not known to serve no reads, and that will not serve any before the end of this leader's log.
func (s *server) serving(members []protocol.ID) []protocol.ID {
	return slices.DeleteFunc(slices.Clone(members), func(id protocol.ID) bool {
		return slices.Contains(s.state.books.deaf, id) && s.admitted[id] == 0
	})
}

// readers returns those of a group's members that serve reads at the end of this leader's log.
func (s *server) readers(members []protocol.ID) []protocol.ID {
	return slices.DeleteFunc(s.serving(members), func(id protocol.ID) bool { return s.dropped[id] > s.admitted[id] })
}

// openIDs returns what is prepared, in order.
func (s *server) openIDs() []store.TxnID {
	var out []store.TxnID
	for id := range s.state.open { //pure:ok they are sorted
		out = append(out, id)
	}
	slices.SortFunc(out, store.TxnID.Compare)
	return out
}

func (s *server) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	st := s.group.Status(env, m.Ref)
	st.Txns, st.Locks, st.Old = len(s.held)+int(s.state.books.next-s.state.books.first), len(s.byKey), s.state.books.old
	for _, id := range s.openIDs() {
		st.Open++
		st.Undecided++
		st.TxnBytes += store.ContentBytes(nil, s.state.open[id].part.Writes)
		if st.OldestUndecided.IsZero() {
			st.OldestUndecided = id
		}
	}
	st.Waiting, st.Snapshots = s.waits.reads(), s.snapshots(env)
	env.Send(protocol.App, st)
}

// Check implements protocol.Checked.
func (s *server) Check() error {
	if n := len(s.state.results); n > 0 {
		return fmt.Errorf("str: server %d: %d results are left", s.cfg.ID, n)
	}
	if err := s.checkHeld(); err != nil {
		return err
	}
	if err := errors.Join(s.reads.Check(), s.shown.Check()); err != nil {
		return fmt.Errorf("str: server %d: %w", s.cfg.ID, err)
	}
	return s.group.Check()
}

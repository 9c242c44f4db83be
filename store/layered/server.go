package layered

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// statePrefix is before all keys of a server: its group alone has any.
const statePrefix = "g"

// sweepTimer is when a server looks for transactions whose coordinators may be gone.
type sweepTimer struct{}

// server is the node of one shard at one site: a member of the shard's group.
type server struct {
	cfg     store.Config
	place   store.Place
	shard   *shard
	group   *kit.Member
	asked   kit.Questions
	late    map[store.TxnID][]kit.Question // those among them whose transactions wait
	waiting inquiries
	first   map[store.TxnID]time.Duration // when a transaction that is open was seen first
}

const (
	// waitFor is how many round trips a transaction waits for others, before it is refused: their
	// decision takes three, and as much again if its leaders change.
	waitFor = 6
	// sweepEvery is how many round trips there are from one sweep to the next. A wait begins for the
	// first one that sees it, and it is over for the first one that sees it too late.
	sweepEvery = 2
	// longestWait is for how many round trips a transaction waits at most, as the leader counts.
	longestWait = waitFor + 2*sweepEvery
)

// newServer returns a server, whose group keeps the given number of entries in its log; 0 is what
// package smr says. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config, logEntries int) (*server, error) {
	cfg, p, err := kit.ServerConfig("layered", cfg)
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, place: p, shard: newShard(cfg.Applied), asked: kit.Questions{},
		late: map[store.TxnID][]kit.Question{}, waiting: inquiries{of: map[uint64]inquiry{}},
		first: map[store.TxnID]time.Duration{}}
	s.group, err = kit.NewMember(cfg, p, kit.MemberConfig{
		Machine: s.shard, Prefix: statePrefix, LogEntries: logEntries,
		Message: func(g kit.Grouped) store.Message { return grouped{g, uint32(p.Index)} },
		Hooks:   raft.Hooks[store.Message]{Committed: s.committed, Confirmed: s.confirmed, Follows: s.follows},
	})
	return s, err
}

// Start implements protocol.Node.
func (s *server) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	s.group.Start(env, log)
	env.After(sweepEvery*s.cfg.RoundTrip, sweepTimer{})
}

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case grouped:
		if int(m.Shard) == s.place.Index {
			s.group.Receive(env, from, m)
		}
	case kit.Ask:
		s.onAsk(env, from, m)
	case store.ReadRequest:
		s.onRead(env, from, m)
	case check:
		s.onCheck(env, from, m)
	case store.StatusQuery:
		if from == protocol.App {
			s.onStatus(env, m)
		}
	default:
		s.group.Receive(env, from, msg)
	}
}

// onAsk has the group carry out a command.
func (s *server) onAsk(env *protocol.Env[store.Message], from protocol.ID, m kit.Ask) {
	if int(m.Shard) != s.place.Index {
		return
	}
	q := kit.Question{From: from, Ref: m.Ref}
	if s.leadsNot(env, q) {
		return
	}
	var at raft.Position
	ok := len(s.asked) < s.cfg.MaxTxns // those that wait count elsewhere: others' ends let them go on
	if ok {
		at, ok = s.group.Propose(env, m.Command)
	}
	if !ok {
		q.Elsewhere(env, 0)
		return
	}
	s.asked[at] = q
}

// leadsNot reports whether the server does not lead, and says who does.
func (s *server) leadsNot(env *protocol.Env[store.Message], q kit.Question) bool {
	if _, leads := s.group.Leads(); leads {
		return false
	}
	q.Elsewhere(env, s.group.Leader().ID)
	return true
}

// committed answers who asked for a command.
func (s *server) committed(env *protocol.Env[store.Message], at raft.Position, command []byte) {
	e := s.shard.results[0]
	s.shard.results = s.shard.results[1:]
	if q, ok := s.asked.Carried(at); ok {
		env.Send(q.From, told{q.Ref, e.result})
		m, _ := s.shard.format.Decode(command)
		if m, ok := m.(prepare); ok && e.State == waiting {
			late := s.late[m.Txn.ID]
			if i := slices.IndexFunc(late, func(o kit.Question) bool { return o.From == q.From }); i >= 0 {
				late[i] = q // which has begun anew
			} else {
				s.late[m.Txn.ID] = append(late, q)
			}
			s.wound(env, map[store.TxnID]bool{}, m.Txn.ID)
		}
	}
	for _, w := range e.woken {
		for _, q := range s.late[w.id] {
			env.Send(q.From, told{q.Ref, w.result})
		}
		delete(s.late, w.id)
		delete(s.first, w.id) // how long it has waited is no sign that its coordinator is gone
	}
}

// wound has coordinators of the site end the younger transactions that one waits for, but for those
// that are wounded already.
func (s *server) wound(env *protocol.Env[store.Message], wounded map[store.TxnID]bool, id store.TxnID) {
	if t := s.shard.waits(id); t != nil {
		for _, w := range s.shard.meet(t).wounds {
			if !wounded[w.id] {
				wounded[w.id] = true
				env.Send(s.cfg.Layout.Coordinator(s.place.Site, w.id), wound{w.id, w.shards})
			}
		}
	}
}

// follows sends those who have asked elsewhere.
func (s *server) follows(env *protocol.Env[store.Message]) {
	var all []kit.Question
	for _, late := range s.late { //pure:ok they are sorted
		all = append(all, late...)
	}
	for _, q := range s.waiting.of { //pure:ok likewise
		if m, ok := q.msg.(check); ok { // a read has others to go by
			all = append(all, kit.Question{From: q.from, Ref: m.Ref})
		}
	}
	s.asked.Elsewhere(env, s.group.Leader().ID, all...)
	clear(s.late)
	clear(s.waiting.of)
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	if _, ok := t.(sweepTimer); ok {
		s.sweep(env)
		return
	}
	s.group.Expire(env, t)
}

// sweep asks the site's coordinators to finish what has been open for long. The sites take turns,
// so that the first one is enough where all are well.
func (s *server) sweep(env *protocol.Env[store.Message]) {
	env.After(sweepEvery*s.cfg.RoundTrip, sweepTimer{})
	seen := map[store.TxnID]time.Duration{}
	for _, t := range s.shard.all() {
		at, ok := s.first[t.id]
		if !ok {
			at = env.Now
		}
		seen[t.id] = at
		if env.Now-at > time.Duration(12+4*s.place.Site)*s.cfg.RoundTrip {
			env.Send(s.cfg.Layout.Coordinator(s.place.Site, t.id), finish{t.id, t.shards})
		}
	}
	wounded := map[store.TxnID]bool{} // by this sweep: all may wait for the same one
	for _, t := range slices.Clone(s.shard.queue) {
		at, ok := s.first[t.id]
		if !ok {
			at = env.Now
		}
		seen[t.id] = at
		s.tend(env, wounded, t, env.Now-at)
	}
	s.first = seen
}

// tend has the group refuse a transaction that has waited for too long, and wounds again what it
// waits for.
func (s *server) tend(env *protocol.Env[store.Message], wounded map[store.TxnID]bool, t *txn, waited time.Duration) {
	if _, leads := s.group.Leads(); !leads {
		return
	}
	if waited <= waitFor*s.cfg.RoundTrip {
		s.wound(env, wounded, t.id)
		return
	}
	s.group.Propose(env, kit.Encoded(s.shard.format, giveUp{t.id}))
}

func (s *server) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	st := s.group.Status(env, m.Ref)
	st.Txns, st.Locks, st.Old = s.shard.size(), len(s.shard.locks), s.shard.books.old
	for _, t := range slices.Concat(s.shard.all(), s.shard.queue) {
		st.Open++
		st.TxnBytes += store.ContentBytes(t.reads, t.writes)
		if t.state == prepared {
			st.Undecided++
			if st.OldestUndecided.IsZero() {
				st.OldestUndecided = t.id
			}
		}
	}
	env.Send(protocol.App, st)
}

// Check implements protocol.Checked.
func (s *server) Check() error {
	locks := map[store.Key]lock{}
	for _, t := range s.shard.all() {
		if t.locked != (t.state == prepared) {
			return fmt.Errorf("layered: server %d: transaction %v in state %d is locked: %v", s.cfg.ID, t.id, t.state, t.locked)
		}
		for _, r := range t.reads {
			l := locks[r.Key]
			l.readers++
			locks[r.Key] = l
		}
		for _, w := range t.writes {
			l := locks[w.Key]
			if !l.writer.IsZero() {
				return fmt.Errorf("layered: server %d: %v and %v have locked %q", s.cfg.ID, l.writer, t.id, w.Key)
			}
			l.writer = t.id
			locks[w.Key] = l
		}
	}
	if len(locks) != len(s.shard.locks) {
		return fmt.Errorf("layered: server %d: %d keys are locked, want %d", s.cfg.ID, len(s.shard.locks), len(locks))
	}
	if n := len(s.shard.queue); n > maxQueue || !slices.IsSortedFunc(s.shard.queue, byAge) || s.shard.freed {
		return fmt.Errorf("layered: server %d: %d transactions wait, the limit is %d", s.cfg.ID, n, maxQueue)
	}
	if n := len(s.shard.results); n > 0 {
		return fmt.Errorf("layered: server %d: %d results are left", s.cfg.ID, n)
	}
	if n := len(s.waiting.of); n > s.cfg.MaxWaiting {
		return fmt.Errorf("layered: server %d: %d questions wait, the limit is %d", s.cfg.ID, n, s.cfg.MaxWaiting)
	}
	return s.group.Check()
}

package layered

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

type (
	// groupTimer is a timer of the Raft node of a shard.
	groupTimer struct {
		shard uint32
		inner protocol.Timer
	}

	// sweepTimer is when a server looks for transactions whose coordinators may be gone.
	sweepTimer struct{}
)

// server is the node of one shard at one site: a member of the shard's group.
type server struct {
	cfg     store.Config
	place   store.Place
	shard   *shard
	group   group
	first   map[store.TxnID]time.Duration // when a transaction that is open was seen first
	leads   smr.Status                    // what the replica said last
	refused string
}

// group is a Raft node of a shard within one of the store's.
type group struct {
	shard uint32
	node  protocol.Node[smr.Message]
	embed protocol.Embedding[store.Message, smr.Message]
}

func newGroup(shard int, node protocol.Node[smr.Message], app func(*protocol.Env[store.Message], smr.Message)) group {
	n := uint32(shard)
	return group{shard: n, node: node, embed: protocol.Embedding[store.Message, smr.Message]{
		Message: func(m smr.Message) store.Message { return grouped{n, m} },
		Timer:   func(t protocol.Timer) protocol.Timer { return groupTimer{n, t} },
		App:     app,
		// nobody else writes records
		Truncate: func(env *protocol.Env[store.Message], before uint64) { env.Truncate(before) },
	}}
}

func (g *group) call(env *protocol.Env[store.Message], call func(*protocol.Env[smr.Message])) {
	g.embed.Call(env, call)
}

func (g *group) receive(env *protocol.Env[store.Message], from protocol.ID, msg smr.Message) {
	g.call(env, func(in *protocol.Env[smr.Message]) { g.node.Receive(in, from, msg) })
}

func (g *group) expire(env *protocol.Env[store.Message], t protocol.Timer) {
	g.call(env, func(in *protocol.Env[smr.Message]) { g.node.Expire(in, t) })
}

func (g *group) broken(env *protocol.Env[store.Message], from protocol.ID) {
	if n, ok := g.node.(protocol.Linked[smr.Message]); ok {
		g.call(env, func(in *protocol.Env[smr.Message]) { n.Broken(in, from) })
	}
}

func (g *group) check() error {
	if n, ok := g.node.(protocol.Checked); ok {
		return n.Check()
	}
	return nil
}

// withDefaults returns the configuration with all fields set. Sites are neither lost nor replaced
// here: a group has the members that it begins with.
func withDefaults(cfg store.Config) (store.Config, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return cfg, err
	}
	if !cfg.Layout.Original() {
		return cfg, fmt.Errorf("layered: Config.Layout: a site is fenced, or in the place of another one (see FixedSites)")
	}
	return cfg, nil
}

// members returns the group of a shard.
func members(l store.Layout, shard int) []smr.Member {
	var out []smr.Member
	for _, i := range l.SitesOf(shard) {
		out = append(out, smr.Member{ID: l.Sites[i].Shards[shard]})
	}
	return out
}

// newServer returns a server. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config) (*server, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	shards, _ := cfg.Layout.Places()
	p, ok := shards[cfg.ID]
	if !ok {
		return nil, fmt.Errorf("layered: Config.ID: %d is no shard of the layout", cfg.ID)
	}
	s := &server{cfg: cfg, place: p, shard: newShard(cfg.Applied), first: map[store.TxnID]time.Duration{}}
	lead := cfg.Layout.Sites[cfg.Layout.FirstOf(p.Index)].Shards[p.Index]
	replica, err := raft.Protocol().NewReplica(smr.ReplicaConfig{
		ID: cfg.ID, Members: members(cfg.Layout, p.Index), Machine: s.shard, RoundTrip: cfg.RoundTrip, Leader: lead,
	})
	if err != nil {
		return nil, err
	}
	s.group = newGroup(p.Index, replica, s.hear)
	return s, nil
}

// Start implements protocol.Node.
func (s *server) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	var inner []protocol.Record[smr.Message]
	for _, r := range log {
		if m, ok := r.Msg.(grouped); ok {
			inner = append(inner, protocol.Record[smr.Message]{Index: r.Index, Msg: m.Msg})
		}
	}
	s.group.call(env, func(in *protocol.Env[smr.Message]) { s.group.node.Start(in, inner) })
	env.After(2*s.cfg.RoundTrip, sweepTimer{})
}

// hear takes what the replica says to its application.
func (s *server) hear(env *protocol.Env[store.Message], msg smr.Message) {
	switch m := msg.(type) {
	case smr.Status:
		s.leads = m
	case smr.Refused:
		s.refused = m.Reason
		env.Send(protocol.App, store.Refused{Reason: m.Reason, Forgot: true})
	}
}

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case grouped:
		if m.Shard == s.group.shard && from != protocol.App {
			s.group.receive(env, from, m.Msg)
		}
	case store.ReadRequest:
		// What a follower has may be old: the commit says so.
		v := s.shard.values[m.Key]
		env.Send(from, store.ReadReply{Ref: m.Ref, Value: v, Pending: !s.shard.locks[m.Key].writer.IsZero(),
			Hint: v.Version.Time})
	case store.StatusQuery:
		if from == protocol.App {
			s.onStatus(env, m)
		}
	}
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case groupTimer:
		s.group.expire(env, t.inner)
	case sweepTimer:
		s.sweep(env)
	}
}

// Broken implements protocol.Linked.
func (s *server) Broken(env *protocol.Env[store.Message], from protocol.ID) {
	s.group.broken(env, from)
}

// sweep asks the site's coordinators to finish what has been open for long. The sites take turns,
// so that the first one is enough where all are well.
func (s *server) sweep(env *protocol.Env[store.Message]) {
	env.After(2*s.cfg.RoundTrip, sweepTimer{})
	seen := map[store.TxnID]time.Duration{}
	for _, t := range s.shard.open() {
		at, ok := s.first[t.id]
		if !ok {
			at = env.Now
		}
		seen[t.id] = at
		if env.Now-at > time.Duration(12+4*s.place.Site)*s.cfg.RoundTrip {
			env.Send(s.cfg.Layout.Coordinator(s.place.Site, t.id), finish{t.id, t.shards})
		}
	}
	s.first = seen
}

func (s *server) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	s.group.receive(env, protocol.App, smr.StatusQuery{})
	st := store.ServerStatus{
		Ref: m.Ref, Site: s.place.Site, Shard: s.place.Index, Epoch: s.cfg.Epoch, Admitted: s.leads.Ready(),
		Refused: s.refused,
		Txns:    len(s.shard.txns), Locks: len(s.shard.locks), Old: s.shard.old,
	}
	for _, t := range s.shard.open() {
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
	for _, t := range s.shard.open() {
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
	return s.group.check()
}

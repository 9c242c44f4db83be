package kit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// A Member is the server of a shard at one site as a member of the shard's Raft group. The server
// hands it Start, and each message and timer first.
type Member struct {
	*raft.Part[store.Message]
	cfg     store.Config
	place   store.Place
	serves  func() bool
	status  smr.Status // what the member said last
	refused string
}

// MemberConfig is what a member is made from, beside its server's configuration.
type MemberConfig struct {
	Machine raft.Machine
	Hooks   raft.Hooks[store.Message] // Said is the member's own
	Prefix  string                    // of the group's keys
	// LogEntries is how many entries the group keeps in its log; 0 is what package smr says.
	LogEntries int
	// Patience is raft.PartConfig's.
	Patience time.Duration
	// Message puts what the members say into a message of the protocol's, which embeds it; nil: they
	// say it as it is.
	Message func(Grouped) store.Message
	// Serves says that the server leads, and has done what a new leader has to do before it may
	// change the members; nil: once the member is Current.
	Serves func() bool
}

// Grouped is what the members of a shard's group say to each other, and their records.
type Grouped struct{ Msg smr.Message }

func (g Grouped) inner() smr.Message { return g.Msg }

// GroupedFields are those of a Grouped: a message of the group's, in the group's own format.
func GroupedFields() func(*wirefmt.Coder, *Grouped) {
	inner := raft.Protocol().Codec
	return func(c *wirefmt.Coder, m *Grouped) {
		var b []byte
		var err error
		if !c.Reading() {
			if b, err = inner.Append(nil, m.Msg); err != nil {
				c.Failf("%v", err)
			}
		}
		wirefmt.View(c, &b)
		if c.Reading() {
			if m.Msg, err = inner.Decode(b); err != nil {
				c.Failf("%v", err)
			}
		}
	}
}

// groupTimer is a timer of a server's group.
type groupTimer struct{ inner protocol.Timer }

// NewMember returns the member of a server whose configuration has its defaults, and whose place is
// given. The error names the field of the configuration that is wrong.
func NewMember(cfg store.Config, at store.Place, of MemberConfig) (*Member, error) {
	m := &Member{cfg: cfg, place: at, serves: of.Serves}
	wrap := of.Message
	if wrap == nil {
		wrap = func(g Grouped) store.Message { return g }
	}
	of.Hooks.Said = m.said
	group := groupOf(cfg, at)
	group.SnapshotEvery = of.LogEntries
	var err error
	m.Part, err = raft.NewPart(raft.PartConfig[store.Message]{
		Group: group, Machine: of.Machine, Hooks: of.Hooks, Prefix: []byte(of.Prefix), Patience: of.Patience,
		Message: func(inner smr.Message) store.Message { return wrap(Grouped{inner}) },
		Timer:   func(t protocol.Timer) protocol.Timer { return groupTimer{t} },
	})
	if err != nil {
		return nil, err
	}
	if m.serves == nil {
		m.serves = m.Current
	}
	return m, nil
}

// groupOf returns what the group of a server's shard is made from, for its node at a place.
func groupOf(cfg store.Config, at store.Place) smr.ReplicaConfig {
	l, k := cfg.Layout, at.Index
	out := smr.ReplicaConfig{ID: cfg.ID, RoundTrip: cfg.RoundTrip}
	var founders []protocol.ID
	if l.Founders != nil {
		founders = l.Founders[k]
		out.Leader = founders[0]
	} else {
		for _, i := range l.HoldersOf(k) {
			founders = append(founders, l.Sites[i].Shards[k])
		}
		out.Leader = l.Sites[l.FirstOf(k)].Shards[k]
	}
	if out.Join = !slices.Contains(founders, cfg.ID); out.Join {
		// Those who are there now are asked to add it.
		founders = slices.DeleteFunc(l.ServersOf(k), func(id protocol.ID) bool { return id == cfg.ID })
	}
	for _, id := range founders {
		out.Members = append(out.Members, smr.Member{ID: id})
	}
	return out
}

// Start takes over what is on the disk. The group alone writes records.
func (m *Member) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	var own []protocol.Record[smr.Message]
	for _, r := range log {
		if g, ok := r.Msg.(interface{ inner() smr.Message }); ok {
			own = append(own, protocol.Record[smr.Message]{Index: r.Index, Msg: g.inner()})
		}
	}
	m.Part.Start(env, own)
}

// Receive takes what other members say, and what the server's application asks of the group; false:
// the message is neither.
func (m *Member) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) bool {
	own := from == protocol.App
	switch msg := msg.(type) {
	case interface{ inner() smr.Message }:
		if !own {
			m.Part.Receive(env, from, msg.inner())
		}
	case store.HandOver:
		if own {
			m.handOver(env, msg)
		}
	case store.Replace:
		if own {
			m.replace(env, msg)
		}
	default:
		return false
	}
	return true
}

// Expire does what one of the group's timers is for; false: it is none.
func (m *Member) Expire(env *protocol.Env[store.Message], t protocol.Timer) bool {
	own, ok := t.(groupTimer)
	if ok {
		m.Part.Expire(env, own.inner)
	}
	return ok
}

// said takes what the member says to its application.
func (m *Member) said(env *protocol.Env[store.Message], msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Status:
		m.status = msg
	case smr.HandingOver:
		env.Send(protocol.App, store.HandingOver{Ref: uint64(msg.ID), Leads: true, Reason: msg.Reason})
	case smr.Refused:
		if msg.Removed {
			return
		}
		m.refused = msg.Reason
		env.Send(protocol.App, store.Refused{Reason: msg.Reason, Forgot: true})
	}
}

// Status returns what a server's status says of where it is, and how it stands with its group.
func (m *Member) Status(env *protocol.Env[store.Message], ref uint64) store.ServerStatus {
	m.Part.Receive(env, protocol.App, smr.StatusQuery{})
	member, removed := m.Standing()
	_, leads := m.Leads()
	return store.ServerStatus{Ref: ref, Site: m.place.Site, Shard: m.place.Index, Epoch: m.cfg.Epoch,
		Admitted: m.status.Ready(), Refused: m.refused, Joins: !member && !removed, Left: removed,
		ArrivedBytes: m.ArrivedBytes(), Leads: leads, Term: m.Term()}
}

// HandOver has the group be led at another site that has a copy, if the member leads it.
func (m *Member) HandOver(env *protocol.Env[store.Message], site int) {
	m.Part.Receive(env, protocol.App, smr.HandOver{To: m.cfg.Layout.Sites[site].Shards[m.place.Index]})
}

// handOver has the group be led at another site. The answer is sent at once or, in said, when the
// group has given it.
func (m *Member) handOver(env *protocol.Env[store.Message], ask store.HandOver) {
	out, l := store.HandingOver{Ref: ask.Ref}, m.cfg.Layout
	_, out.Leads = m.Leads()
	switch {
	case ask.Site < 0 || ask.Site >= len(l.Sites) || !l.Sites[ask.Site].Has(m.place.Index):
		out.Reason = "the site has no copy"
	case !out.Leads:
		out.Reason = "the server does not lead"
	case ask.Site != m.place.Site:
		m.Part.Receive(env, protocol.App,
			smr.HandOver{ID: smr.CallID(ask.Ref), To: l.Sites[ask.Site].Shards[m.place.Index]})
		return
	}
	env.Send(protocol.App, out)
}

// replace has the group replace a member, and answers what is done and what it waits for. The new
// member has what the others have before it is added, and is added before the old one is removed:
// so at no time do fewer have a copy. An old member that leads hands over first.
func (m *Member) replace(env *protocol.Env[store.Message], ask store.Replace) {
	out := store.Replacing{Ref: ask.Ref, Leads: m.serves()}
	if out.Leads {
		out.Done, out.Moved, out.Reason = m.replaceStep(env, ask)
	}
	env.Send(protocol.App, out)
}

// replaceStep does the next step of a replacement.
func (m *Member) replaceStep(env *protocol.Env[store.Message], ask store.Replace) (done, moved bool, reason string) {
	l, k := m.cfg.Layout, m.place.Index
	has := func(site int) bool { return site >= 0 && site < len(l.Sites) && l.Sites[site].Has(k) }
	if !has(ask.From) || !has(ask.To) || ask.From == ask.To {
		return false, false, "a site has no server of the shard, or is to replace itself"
	}
	members, settled := m.Members()
	from, to := l.Sites[ask.From].Shards[k], l.Sites[ask.To].Shards[k]
	here, there := slices.Contains(members, from), slices.Contains(members, to)
	gone, goes := from, ask.From
	if ask.Back {
		gone, goes = to, ask.To
	}
	switch {
	case !settled:
		return false, false, "a change of the members is on its way"
	case here != there && (there || ask.Back):
		return true, there, ""
	case !here:
		return false, false, "the site whose copy is to move has none"
	case !there:
		return false, false, m.Change(env, smr.Change{Add: smr.Member{ID: to}})
	case goes == m.place.Site:
		m.HandOver(env, ask.From+ask.To-goes)
		return false, false, "it is led at another site first"
	}
	return false, false, m.Change(env, smr.Change{Remove: gone})
}

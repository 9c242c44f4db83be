package pbft

import (
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// A strategy is how a replica betrays the others.
type strategy = string

// The strategies.
const (
	// Equivocate proposes another batch to every other member.
	equivocate strategy = "equivocate"
	// Conspire does so too, votes for and commits whatever it hears of, and does not say so to all.
	conspire strategy = "conspire"
	// Partial is silent to every other member, and client.
	partial strategy = "partial"
	// Mute says nothing at all.
	mute strategy = "mute"
	// lieEarly, lieTentative and lieCommitted give clients wrong results.
	lieEarly     strategy = "lie-early"
	lieTentative strategy = "lie-tentative"
	lieCommitted strategy = "lie-committed"
	// LieSeldom changes a bit of one early reply in a hundred, so that it may still be a result.
	lieSeldom strategy = "lie-seldom"
	// LieCheckpoint signs checkpoints of states, and of members, that never were.
	lieCheckpoint strategy = "lie-checkpoint"
	// LieReads gives wrong answers to optimised reads, and wrong parts of states.
	lieReads strategy = "lie-reads"
	// Omit leaves out of its view changes what it has prepared, and changes views for no reason.
	omit strategy = "omit"
	// Unlawful begins views with other orders than follow from what the others said.
	unlawful strategy = "unlawful"
	// Hasty begins views with nothing but its own word.
	hasty strategy = "hasty"
	// Gap keeps one proposal in ten back, and proposes what follows.
	gap strategy = "gap"
	// Amnesia forgets all that it had on its disk, again and again.
	amnesia strategy = "amnesia"
	// Forge says things in the names of others, and again what they said before.
	forge strategy = "forge"
	// Slow says everything as late as it can.
	slow strategy = "slow"
	// Starve never proposes what some clients ask for.
	starve strategy = "starve"
)

// strategies returns all strategies that one traitor can have by itself.
func strategies() []string {
	return []strategy{equivocate, conspire, partial, mute, lieEarly, lieTentative, lieCommitted, lieSeldom, lieCheckpoint,
		lieReads, omit, unlawful, hasty, gap, amnesia, forge, slow, starve}
}

// traitorOf returns what makes traitors with a strategy: honest replicas but for what they say.
func traitorOf(s string) bft.Traitor {
	return func(node protocol.Node[bft.Message], cfg bft.ReplicaConfig) protocol.Node[bft.Message] {
		return &traitor{inner: node.(*replica), cfg: cfg, st: newStatements(cfg.Scheme), strategy: s}
	}
}

type traitor struct {
	inner    *replica
	cfg      bft.ReplicaConfig
	st       *statements
	strategy strategy
	said     []prepare // by others, to be replayed
	late     []protocol.Effect[bft.Message]
	ticks    int
}

type lateTimer struct{}

// Standing tells how the replica is that the traitor would be.
func (t *traitor) Standing() bft.Standing { return t.inner.Standing() }

// Start is part of protocol.Node, as are Receive and Expire.
func (t *traitor) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	t.inner.Start(env, log)
	t.betray(env)
	env.After(t.cfg.RoundTrip, lateTimer{})
}

func (t *traitor) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if m, ok := msg.(kit.Submitted); ok && t.strategy == starve && m.Request.Body().Client%100 == 0 {
		return
	}
	t.inner.Receive(env, from, msg)
	t.betray(env)
	switch m := msg.(type) {
	case prepare:
		t.said = append(t.said, m)
	case proposal:
		if o := *m.Order.Body(); t.strategy == conspire {
			t.toAll(env, prepare{t.st.votes.Sign(t.cfg.Scheme, t.inner.Config.Signer, voteBody(o))})
			t.toAll(env, commit{Order: o})
		}
	}
}

func (t *traitor) toAll(env *protocol.Env[bft.Message], msg bft.Message) {
	for _, m := range t.inner.Dir.Members {
		if m.ID != t.cfg.ID {
			env.SendAhead(m.ID, msg)
		}
	}
}

func (t *traitor) Expire(env *protocol.Env[bft.Message], timer protocol.Timer) {
	if _, ok := timer.(lateTimer); !ok {
		t.inner.Expire(env, timer)
		t.betray(env)
		return
	}
	env.After(t.cfg.RoundTrip, lateTimer{})
	env.Out = append(env.Out, t.late...)
	t.late = nil
	t.ticks++
	if t.strategy == omit && t.ticks%20 == 0 {
		c := changeBody{View: t.inner.View + 1}
		t.toAll(env, viewChange{t.st.changes.Sign(t.cfg.Scheme, t.inner.Config.Signer, c)})
	}
	if t.strategy == amnesia && t.ticks%30 == 0 {
		t.forget(env)
	}
	if t.strategy == forge && len(t.said) > 0 {
		t.forge(env)
	}
}

// forget begins anew with an empty disk.
func (t *traitor) forget(env *protocol.Env[bft.Message]) {
	var keys [][]byte
	for k := range env.Scan([]byte{}, nil) {
		keys = append(keys, slices.Clone(k))
	}
	for _, k := range keys {
		env.Delete(k)
	}
	env.Truncate(env.NextIndex())
	t.inner, _ = newReplica(t.cfg) // as it was made before
	t.inner.Start(env, nil)
}

// forge says what others said, again and as if they had said it of something else.
func (t *traitor) forge(env *protocol.Env[bft.Message]) {
	m := t.said[len(t.said)/2]
	t.toAll(env, m)
	for _, p := range t.inner.Dir.Members {
		o := orderBody{View: t.inner.View, Seq: t.inner.Top + 1, Batch: bft.Digest{1}}
		t.toAll(env, prepare{t.st.votes.Forge(p.Key, []byte("trust me"), voteBody(o))})
		t.toAll(env, proposal{Order: t.st.orders.Forge(p.Key, []byte("trust me"), o)})
		t.toAll(env, kit.Reached{Checkpoint: t.st.Checkpoints.Forge(p.Key, nil, kit.Checkpoint{Seq: t.inner.Low() + 8})})
		t.toAll(env, viewChange{t.st.changes.Forge(p.Key, nil, changeBody{View: t.inner.View + 3})})
	}
	t.said = t.said[len(t.said)/2:]
}

// betray changes what the honest node wants to say.
func (t *traitor) betray(env *protocol.Env[bft.Message]) {
	out := slices.Clone(env.Out)
	env.Out = env.Out[:0]
	for _, e := range out {
		if e.Kind != protocol.KindSend && e.Kind != protocol.KindSendAhead {
			env.Out = append(env.Out, e)
			continue
		}
		switch odd := e.To%2 == 1; {
		case t.strategy == mute, t.strategy == partial && odd:
		case t.strategy == gap && t.keepsBack(e.Msg):
		case t.strategy == lieSeldom && env.Rand.IntN(100) > 0:
			env.Out = append(env.Out, e)
		case t.strategy == slow:
			t.late = append(t.late, e)
		case odd && (t.strategy == equivocate || t.strategy == conspire):
			t.equivocate(env, e)
		default:
			e.Msg = t.lie(e.Msg)
			env.Out = append(env.Out, e)
		}
	}
}

// keepsBack reports whether a message is a proposal of its own that nobody is to have.
func (t *traitor) keepsBack(msg bft.Message) bool {
	m, ok := msg.(proposal)
	return ok && m.Order.By(t.inner.Config.Signer.Key()) && m.Order.Body().Seq%10 == 5
}

// equivocate tells half of the members of another batch, an empty one.
func (t *traitor) equivocate(env *protocol.Env[bft.Message], e protocol.Effect[bft.Message]) {
	switch m := e.Msg.(type) {
	case proposal:
		o := *m.Order.Body()
		if !m.Order.By(t.inner.Config.Signer.Key()) {
			return
		}
		o.Batch = bft.Digest{}
		e.Msg = proposal{Order: t.st.orders.Sign(t.cfg.Scheme, t.inner.Config.Signer, o)}
		env.Out = append(env.Out, e)
		if t.strategy == conspire {
			env.SendAhead(e.To, commit{Order: o})
			for _, other := range t.inner.Dir.Members { // so that the other conspirators hear of it
				if other.ID != t.cfg.ID && other.ID%2 == 0 && other.ID != e.To {
					env.SendAhead(other.ID, e.Msg)
				}
			}
		}
		return
	case commit:
		if t.strategy == conspire {
			return
		}
	}
	env.Out = append(env.Out, e)
}

func (t *traitor) lie(msg bft.Message) bft.Message {
	wrong := bft.Result{Outcome: bft.Executed, Value: []byte("a lie")}
	switch m := msg.(type) {
	case earlyReply:
		if t.strategy == lieEarly || t.strategy == lieSeldom {
			b := *m.Reply.Body()
			b.Items = slices.Clone(b.Items)
			for i := range b.Items {
				if b.Items[i].Result = wrong; t.strategy == lieSeldom {
					b.Items[i].Result = altered(m.Reply.Body().Items[i].Result)
				}
			}
			return earlyReply{t.st.early.Sign(t.cfg.Scheme, t.inner.Config.Signer, b)}
		}
	case replies:
		if t.strategy == lieTentative || t.strategy == lieCommitted {
			m.Items = slices.Clone(m.Items)
			for i := range m.Items {
				m.Items[i] = replyItem{Number: m.Items[i].Number, Seq: m.Items[i].Seq, Full: true, Result: wrong,
					Digest: wrong.Digest(), Tentative: t.strategy == lieTentative}
			}
			return m
		}
	case kit.ReadReply:
		if t.strategy == lieReads {
			m.Full, m.Value, m.Digest = true, wrong.Value, wrong.Digest()
			return m
		}
	case kit.StatePage:
		if t.strategy == lieReads {
			m.Page = append(slices.Clone(m.Page), 0)
			return m
		}
	case kit.Reached:
		if t.strategy == lieCheckpoint {
			c := *m.Checkpoint.Body()
			if c.State = (bft.Digest{1}); c.Seq%16 == 0 {
				c.Members = bft.Digest{1} // as if the epoch ended
			}
			return kit.Reached{Checkpoint: t.st.Checkpoints.Sign(t.cfg.Scheme, t.inner.Config.Signer, c)}
		}
	case viewChange:
		if t.strategy == omit {
			c := changeBody{View: m.Change.Body().View}
			return viewChange{t.st.changes.Sign(t.cfg.Scheme, t.inner.Config.Signer, c)}
		}
	case newView:
		if m.Start.By(t.inner.Config.Signer.Key()) {
			return newView{t.st.starts.Sign(t.cfg.Scheme, t.inner.Config.Signer, t.begin(*m.Start.Body()))}
		}
	}
	return msg
}

// altered returns a result that differs in a bit.
func altered(r bft.Result) bft.Result {
	r.Value = append(slices.Clone(r.Value), 0)
	if n := len(r.Value) - 1; n > 0 {
		r.Value = r.Value[:n]
	}
	r.Value[len(r.Value)/2] ^= 1
	return r
}

// begin returns what the view begins with that the traitor leads.
func (t *traitor) begin(s startBody) startBody {
	own := t.st.changes.Sign(t.cfg.Scheme, t.inner.Config.Signer, changeBody{View: s.View})
	var orders []orderBody
	switch t.strategy {
	case unlawful:
		for i := range s.Orders {
			orders = append(orders, orderBody{View: s.View, Seq: s.Orders[i].Body().Seq})
		}
		if len(orders) == 0 {
			orders = append(orders, orderBody{View: s.View, Seq: t.inner.Low() + 1})
		}
	case hasty:
		s.Changes = []bft.Signed[changeBody]{own}
	case omit:
		s.Changes = slices.Clone(s.Changes)
		var changes []*changeBody
		for i := range s.Changes {
			if s.Changes[i].By(t.inner.Config.Signer.Key()) {
				s.Changes[i] = own
			}
			changes = append(changes, s.Changes[i].Body())
		}
		_, orders = choose(s.View, changes)
	default:
		return s
	}
	s.Orders = nil
	for _, o := range orders {
		s.Orders = append(s.Orders, t.st.orders.Sign(t.cfg.Scheme, t.inner.Config.Signer, o))
	}
	return s
}

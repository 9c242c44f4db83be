package pbft

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// A Strategy is how a replica betrays the others.
type Strategy string

// The strategies.
const (
	// Equivocate proposes another batch to every other member.
	Equivocate Strategy = "equivocate"
	// Conspire does so too, votes for and commits whatever it hears of, and does not say so to all.
	Conspire Strategy = "conspire"
	// Partial is silent to every other member, and client.
	Partial Strategy = "partial"
	// Mute says nothing at all.
	Mute Strategy = "mute"
	// LieEarly, LieTentative and LieCommitted give clients wrong results.
	LieEarly     Strategy = "lie-early"
	LieTentative Strategy = "lie-tentative"
	LieCommitted Strategy = "lie-committed"
	// LieCheckpoint signs checkpoints of states that never were.
	LieCheckpoint Strategy = "lie-checkpoint"
	// LieReads gives wrong answers to optimised reads, and wrong parts of states.
	LieReads Strategy = "lie-reads"
	// Omit leaves out of its view changes what it has prepared, and changes views for no reason.
	Omit Strategy = "omit"
	// Unlawful begins views with other orders than follow from what the others said.
	Unlawful Strategy = "unlawful"
	// Forge says things in the names of others, and again what they said before.
	Forge Strategy = "forge"
	// Slow says everything as late as it can.
	Slow Strategy = "slow"
	// Starve never proposes what one client asks for.
	Starve Strategy = "starve"
)

// Strategies returns all strategies that one traitor can have by itself.
func Strategies() []Strategy {
	return []Strategy{Equivocate, Conspire, Partial, Mute, LieEarly, LieTentative, LieCommitted, LieCheckpoint, LieReads,
		Omit, Unlawful, Forge, Slow, Starve}
}

// Traitor returns a constructor of traitors with a strategy: honest replicas but for what they say.
func Traitor(s Strategy) func(protocol.Node[bft.Message], bft.ReplicaConfig) protocol.Node[bft.Message] {
	return func(node protocol.Node[bft.Message], cfg bft.ReplicaConfig) protocol.Node[bft.Message] {
		return &traitor{inner: node.(*Replica), cfg: cfg, st: newStatements(cfg.Scheme), strategy: s}
	}
}

type traitor struct {
	inner    *Replica
	cfg      bft.ReplicaConfig
	st       *statements
	strategy Strategy
	said     []Prepare // by others, to be replayed
	late     []protocol.Effect[bft.Message]
	ticks    int
}

type lateTimer struct{}

// Start is part of protocol.Node, as are Receive and Expire.
func (t *traitor) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	t.inner.Start(env, log)
	t.betray(env)
	env.After(t.cfg.RoundTrip, lateTimer{})
}

func (t *traitor) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if m, ok := msg.(Submit); ok && t.strategy == Starve && slices.Min(slices.Collect(maps.Keys(
		t.cfg.Directory.Clients))) == m.Request.Body().Client {
		return
	}
	t.inner.Receive(env, from, msg)
	t.betray(env)
	switch m := msg.(type) {
	case Prepare:
		t.said = append(t.said, m)
	case Propose:
		if o := *m.Order.Body(); t.strategy == Conspire {
			t.toAll(env, Prepare{t.st.votes.Sign(t.cfg.Scheme, t.cfg.Signer, Vote(o))})
			t.toAll(env, Commit{Order: o})
		}
	}
}

func (t *traitor) toAll(env *protocol.Env[bft.Message], msg bft.Message) {
	for _, m := range t.cfg.Directory.Members {
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
	if t.strategy == Omit && t.ticks%20 == 0 {
		c := Change{View: t.inner.view + 1}
		t.toAll(env, ViewChange{t.st.changes.Sign(t.cfg.Scheme, t.cfg.Signer, c)})
	}
	if t.strategy == Forge && len(t.said) > 0 {
		t.forge(env)
	}
}

// forge says what others said, again and as if they had said it of something else.
func (t *traitor) forge(env *protocol.Env[bft.Message]) {
	m := t.said[len(t.said)/2]
	t.toAll(env, m)
	for _, p := range t.cfg.Directory.Members {
		o := Order{View: t.inner.view, Seq: t.inner.top + 1, Batch: bft.Digest{1}}
		t.toAll(env, Prepare{t.st.votes.Forge(p.Key, []byte("trust me"), Vote(o))})
		t.toAll(env, Propose{Order: t.st.orders.Forge(p.Key, []byte("trust me"), o)})
		t.toAll(env, Reached{t.st.checkpoints.Forge(p.Key, nil, Checkpoint{Seq: t.inner.low() + 8})})
		t.toAll(env, ViewChange{t.st.changes.Forge(p.Key, nil, Change{View: t.inner.view + 3})})
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
		case t.strategy == Mute, t.strategy == Partial && odd:
		case t.strategy == Slow:
			t.late = append(t.late, e)
		case odd && (t.strategy == Equivocate || t.strategy == Conspire):
			t.equivocate(env, e)
		default:
			e.Msg = t.lie(e.Msg)
			env.Out = append(env.Out, e)
		}
	}
}

// equivocate tells half of the members of another batch, an empty one.
func (t *traitor) equivocate(env *protocol.Env[bft.Message], e protocol.Effect[bft.Message]) {
	switch m := e.Msg.(type) {
	case Propose:
		o := *m.Order.Body()
		if !m.Order.By(t.cfg.Signer.Key()) {
			return
		}
		o.Batch = bft.Digest{}
		e.Msg = Propose{Order: t.st.orders.Sign(t.cfg.Scheme, t.cfg.Signer, o)}
		env.Out = append(env.Out, e)
		if t.strategy == Conspire {
			env.SendAhead(e.To, Commit{Order: o})
			for _, other := range t.cfg.Directory.Members { // so that the other conspirators hear of it
				if other.ID != t.cfg.ID && other.ID%2 == 0 && other.ID != e.To {
					env.SendAhead(other.ID, e.Msg)
				}
			}
		}
		return
	case Commit:
		if t.strategy == Conspire {
			return
		}
	}
	env.Out = append(env.Out, e)
}

func (t *traitor) lie(msg bft.Message) bft.Message {
	wrong := bft.Result{Outcome: bft.Executed, Value: []byte("a lie")}
	switch m := msg.(type) {
	case Early:
		if t.strategy == LieEarly {
			b := *m.Reply.Body()
			b.Items = slices.Clone(b.Items)
			for i := range b.Items {
				b.Items[i].Result = wrong
			}
			return Early{t.st.early.Sign(t.cfg.Scheme, t.cfg.Signer, b)}
		}
	case Reply:
		if t.strategy == LieTentative || t.strategy == LieCommitted {
			m.Items = slices.Clone(m.Items)
			for i := range m.Items {
				m.Items[i] = ReplyItem{Number: m.Items[i].Number, Seq: m.Items[i].Seq, Full: true, Result: wrong,
					Digest: wrong.Digest(), Tentative: t.strategy == LieTentative}
			}
			return m
		}
	case ReadReply:
		if t.strategy == LieReads {
			m.Full, m.Value, m.Digest = true, wrong.Value, wrong.Digest()
			return m
		}
	case StatePage:
		if t.strategy == LieReads {
			m.Page = append(slices.Clone(m.Page), 0)
			return m
		}
	case Reached:
		if t.strategy == LieCheckpoint {
			return Reached{t.st.checkpoints.Sign(t.cfg.Scheme, t.cfg.Signer, Checkpoint{m.Checkpoint.Body().Seq,
				bft.Digest{1}})}
		}
	case ViewChange:
		if t.strategy == Omit {
			c := Change{View: m.Change.Body().View}
			return ViewChange{t.st.changes.Sign(t.cfg.Scheme, t.cfg.Signer, c)}
		}
	case NewView:
		if t.strategy == Unlawful && m.Start.By(t.cfg.Signer.Key()) {
			s := *m.Start.Body()
			s.Orders = slices.Clone(s.Orders)
			for i := range s.Orders {
				o := *s.Orders[i].Body()
				o.Batch = bft.Digest{}
				s.Orders[i] = t.st.orders.Sign(t.cfg.Scheme, t.cfg.Signer, o)
			}
			return NewView{t.st.starts.Sign(t.cfg.Scheme, t.cfg.Signer, s)}
		}
	}
	return msg
}

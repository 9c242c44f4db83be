package zyzzyva

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
	// equivocate gives every other member another history.
	equivocate strategy = "equivocate"
	// conspire does so too, and stamps whatever history it hears of, and says that it is certified.
	conspire strategy = "conspire"
	// partial is silent to every other member, and client.
	partial strategy = "partial"
	// mute says nothing at all.
	mute strategy = "mute"
	// lieSpeculated, lieHeld and lieFinal give clients wrong results.
	lieSpeculated strategy = "lie-speculated"
	lieHeld       strategy = "lie-held"
	lieFinal      strategy = "lie-final"
	// lieCheckpoint signs checkpoints of states, and members, that never were.
	lieCheckpoint strategy = "lie-checkpoint"
	// lieReads gives wrong answers to optimised reads, and wrong parts of states.
	lieReads strategy = "lie-reads"
	// lieCommitted tells those that lag behind that nothing was in what is committed, and all that it
	// holds certificates of whatever it has executed.
	lieCommitted strategy = "lie-committed"
	// omit leaves out of its view changes what it has accepted, and changes views for no reason.
	omit strategy = "omit"
	// stale has in its view changes the oldest certificate that it ever had, with its log of then.
	stale strategy = "stale"
	// unlawful begins views with words that nobody said.
	unlawful strategy = "unlawful"
	// hasty begins views with nothing but its own word.
	hasty strategy = "hasty"
	// forked begins a view in two ways, both of them lawful if it hears enough.
	forked strategy = "forked"
	// gap keeps one order in ten back, and goes on with what follows.
	gap strategy = "gap"
	// amnesia forgets all that it had on its disk, again and again.
	amnesia strategy = "amnesia"
	// forge says things in the names of others, and again what they said before.
	forge strategy = "forge"
	// slow says everything as late as it can.
	slow strategy = "slow"
	// starve never gives a place to what some clients ask for.
	starve strategy = "starve"
)

// strategies returns all strategies that one traitor can have by itself.
func strategies() []string {
	return []string{equivocate, conspire, partial, mute, lieSpeculated, lieHeld, lieFinal, lieCheckpoint, lieReads,
		lieCommitted, omit, stale, unlawful, hasty, forked, gap, amnesia, forge, slow, starve}
}

// traitorOf returns what makes traitors with a strategy: honest replicas but for what they say.
func traitorOf(s string) bft.Traitor {
	return func(node protocol.Node[bft.Message], cfg bft.ReplicaConfig) protocol.Node[bft.Message] {
		return &traitor{inner: node.(*replica), cfg: cfg, st: newStatements(cfg.Scheme), strategy: s,
			other: map[bft.Seq]bft.Digest{}}
	}
}

type traitor struct {
	inner    *replica
	cfg      bft.ReplicaConfig
	st       *statements
	strategy strategy
	view     bft.View                // of other
	other    map[bft.Seq]bft.Digest  // the history of the other half
	first    *bft.Signed[changeBody] // its first view change with a certificate
	said     []stamped               // by others, to be replayed
	changes  []bft.Signed[changeBody]
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
	case stamped:
		t.said = append(t.said, m)
	case proposal:
		if t.strategy == conspire && from == t.inner.Dir.Primary(m.Order.Body().View).ID {
			t.agree(env, *m.Order.Body())
		}
	case viewChange:
		t.changes = append(t.changes, m.Change)
	}
}

// agree has each half of the members believe that the history that a primary of the conspiracy
// gives it is everybody's.
func (t *traitor) agree(env *protocol.Env[bft.Message], o orderBody) {
	if _, again := t.other[o.Seq]; again && t.view == o.View {
		return
	}
	other := t.otherOrder(o)
	for _, m := range t.inner.Dir.Members {
		b := stampBody{o.View, o.Seq, o.History}
		if m.ID%2 == 1 {
			b.History = other.History
		}
		if m.ID != t.cfg.ID {
			env.SendAhead(m.ID, stamped{t.st.stamps.Sign(t.cfg.Scheme, t.inner.Config.Signer, b)})
			env.SendAhead(m.ID, t.status(b))
		}
	}
}

// otherOrder returns what the primary says to the other half instead of an order.
func (t *traitor) otherOrder(o orderBody) orderBody {
	if t.view != o.View {
		t.view = o.View
		clear(t.other)
	}
	before, ok := t.other[o.Seq-1]
	if !ok {
		before, _ = t.inner.history(o.Seq - 1)
	}
	o.Batch, o.History = bft.Digest{}, chain(before, bft.Digest{})
	t.other[o.Seq] = o.History
	return o
}

func (t *traitor) status(held stampBody) status {
	r := t.inner
	return status{r.View, r.Active, r.Low(), r.Committed, r.last, held}
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
		t.toAll(env, viewChange{t.change(changeBody{View: t.inner.View + 1})})
	}
	if t.strategy == amnesia && t.ticks%30 == 0 {
		t.forget(env)
	}
	if t.strategy == forge && len(t.said) > 0 {
		t.forge(env)
	}
}

func (t *traitor) change(c changeBody) bft.Signed[changeBody] {
	return t.st.changes.Sign(t.cfg.Scheme, t.inner.Config.Signer, c)
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
	m, trust := t.said[len(t.said)/2], []byte("trust me")
	t.toAll(env, m)
	for _, p := range t.inner.Dir.Members {
		o := orderBody{View: t.inner.View, Seq: t.inner.last + 1, Batch: bft.Digest{1}}
		s := stampBody{View: t.inner.View, Seq: t.inner.last, History: bft.Digest{1}}
		t.toAll(env, stamped{t.st.stamps.Forge(p.Key, trust, s)})
		t.toAll(env, certified{Proof: bft.Join([]bft.Signed[stampBody]{t.st.stamps.Forge(p.Key, trust, s)})})
		t.toAll(env, proposal{Order: t.st.orders.Forge(p.Key, trust, o)})
		t.toAll(env, misdeed{t.st.orders.Forge(p.Key, trust, o), t.st.orders.Forge(p.Key, trust, orderBody{Seq: o.Seq})})
		c := kit.Checkpoint{Seq: t.inner.Low() + 8}
		t.toAll(env, kit.Reached{Checkpoint: t.st.Checkpoints.Forge(p.Key, nil, c)})
		t.toAll(env, viewChange{t.st.changes.Forge(p.Key, nil, changeBody{View: t.inner.View + 3})})
	}
	t.said = t.said[len(t.said)/2:]
}

// betray changes what the honest node wants to say.
func (t *traitor) betray(env *protocol.Env[bft.Message]) {
	out := slices.Clone(env.Out)
	env.Out = env.Out[:0]
	for _, e := range out {
		m, ok := e.Msg.(proposal)
		if ok && e.Kind == protocol.KindAppend && t.strategy == conspire && m.Order.By(t.inner.Config.Signer.Key()) {
			t.agree(env, *m.Order.Body())
		}
		if e.Kind != protocol.KindSend && e.Kind != protocol.KindSendAhead {
			env.Out = append(env.Out, e)
			continue
		}
		switch odd := e.To%2 == 1; {
		case t.strategy == mute, t.strategy == partial && odd:
		case t.strategy == gap && t.keepsBack(e.Msg):
		case t.strategy == slow:
			t.late = append(t.late, e)
		default:
			if e.Msg = t.lie(e.Msg); odd {
				e.Msg = t.toOddOnes(e.Msg)
			}
			env.Out = append(env.Out, e)
		}
	}
}

// keepsBack reports whether a message is an order of its own that nobody is to have.
func (t *traitor) keepsBack(msg bft.Message) bool {
	m, ok := msg.(proposal)
	return ok && m.Order.By(t.inner.Config.Signer.Key()) && m.Order.Body().Seq%10 == 5
}

// toOddOnes tells half of the members of another history, in which nothing is asked for, or of
// another beginning of a view.
func (t *traitor) toOddOnes(msg bft.Message) bft.Message {
	switch m := msg.(type) {
	case proposal:
		if t.strategy != equivocate && t.strategy != conspire || !m.Order.By(t.inner.Config.Signer.Key()) {
			return msg
		}
		o := t.otherOrder(*m.Order.Body())
		return proposal{Order: t.st.orders.Sign(t.cfg.Scheme, t.inner.Config.Signer, o)}
	case newView:
		if t.strategy == forked && m.Start.By(t.inner.Config.Signer.Key()) {
			return newView{Start: t.st.starts.Sign(t.cfg.Scheme, t.inner.Config.Signer, t.fork(*m.Start.Body()))}
		}
	}
	return msg
}

// fork returns another beginning of a view, by the words of others than that one, and its own that
// it has nothing.
func (t *traitor) fork(s startBody) startBody {
	by := map[bft.Key]bool{t.inner.Config.Signer.Key(): true}
	out := startBody{s.View, []bft.Signed[changeBody]{t.change(changeBody{View: s.View})}}
	for i := len(t.changes) - 1; i >= 0 && len(out.Changes) < t.inner.Dir.Quorum(); i-- {
		c := t.changes[i]
		for _, m := range t.inner.Dir.Members {
			if c.By(m.Key) && c.Body().View == s.View && !by[m.Key] {
				by[m.Key] = true
				out.Changes = append(out.Changes, c)
			}
		}
	}
	return out
}

func (t *traitor) lie(msg bft.Message) bft.Message {
	wrong := bft.Result{Outcome: bft.Executed, Value: []byte("a lie")}
	switch m := msg.(type) {
	case replies:
		return t.lieToClients(m, wrong)
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
	case concluded:
		if t.strategy == lieCommitted {
			return concluded{m.Epoch, m.After, make([]bft.Digest, len(m.Batches))}
		}
	case status:
		if h, ok := t.inner.history(t.inner.last); ok && t.strategy == lieCommitted {
			return t.status(stampBody{m.View, t.inner.last, h})
		}
	case viewChange:
		return viewChange{t.changeInstead(m.Change)}
	case newView:
		if m.Start.By(t.inner.Config.Signer.Key()) {
			m.Start = t.st.starts.Sign(t.cfg.Scheme, t.inner.Config.Signer, t.begin(*m.Start.Body()))
			return m
		}
	}
	return msg
}

func (t *traitor) lieToClients(m replies, wrong bft.Result) bft.Message {
	words := map[strategy]word{lieSpeculated: speculated, lieHeld: held, lieFinal: final}
	w, ok := words[t.strategy]
	if !ok {
		return m
	}
	m.Items = slices.Clone(m.Items)
	for i := range m.Items {
		was := m.Items[i]
		m.Items[i] = replyItem{Number: was.Number, Seq: was.Seq, History: was.History, Full: true, Result: wrong,
			Digest: wrong.Digest(), Word: w}
	}
	return m
}

// changeInstead returns what the traitor signs when it gives a view up.
func (t *traitor) changeInstead(s bft.Signed[changeBody]) bft.Signed[changeBody] {
	b := *s.Body()
	if t.first == nil && !certifiedNothing(&b.Proof) {
		t.first = &s
	}
	switch {
	case t.strategy == omit:
		return t.change(changeBody{View: b.View})
	case t.strategy == stale && t.first != nil:
		c := *t.first.Body()
		c.View = b.View
		return t.change(c)
	}
	return s
}

// begin returns what the view begins with that the traitor leads.
func (t *traitor) begin(s startBody) startBody {
	s.Changes = slices.Clone(s.Changes)
	for i := range s.Changes {
		c := &s.Changes[i]
		switch t.strategy {
		case unlawful:
			if !c.By(t.inner.Config.Signer.Key()) {
				*c = t.st.changes.Forge(t.inner.Config.Signer.Key(), []byte("trust me"), changeBody{View: s.View})
			}
		case hasty:
			*c = t.change(changeBody{View: s.View})
		case omit, stale:
			if c.By(t.inner.Config.Signer.Key()) {
				*c = t.changeInstead(*c)
			}
		}
	}
	return s
}

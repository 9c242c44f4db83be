package zyzzyva

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// client is a client of a group, a protocol.Node. Its application gives it a bft.Call and gets
// bft.Done: there are no first replies.
type client struct {
	kit.Client[words]
	st *statements
}

// words are what is known of an operation.
type words struct {
	heard  []heard // by member
	stamps []bft.Signed[stampBody]
	orders []*bft.Signed[orderBody]
	// since is the tick in which a quorum had stamped one history, 0 before; sent, that in which its
	// certificate was sent.
	since, sent int
}

const (
	waitForAll  = 2 // ticks, when a quorum has stamped a history
	certifyTick = 8 // ticks between two certificates of one operation
)

// newClient returns a client node.
func newClient(cfg bft.ClientConfig) (*client, error) {
	c := &client{st: newStatements(cfg.Scheme)}
	if err := c.Init("zyzzyva", cfg, &c.st.Statements); err != nil {
		return nil, err
	}
	return c, nil
}

// Receive is part of protocol.Node.
func (c *client) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if from == protocol.App {
		c.OnApp(env, msg)
	}
	if m, ok := msg.(kit.Links); ok {
		c.OnLinks(env, m)
	}
	i := c.Member(from)
	if i < 0 {
		return
	}
	switch m := msg.(type) {
	case replies:
		if !c.OtherEpoch(env, from, m.Epoch) {
			c.onReply(env, i, m)
		}
	case kit.ReadReply:
		c.OnReadReply(env, i, m)
	}
}

// Expire is part of protocol.Node.
func (c *client) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	c.Client.Expire(env, t)
	if _, ok := t.(kit.BeatTimer); ok {
		c.certify(env)
	}
}

func (c *client) onReply(env *protocol.Env[bft.Message], member int, m replies) {
	if m.Session != c.Session || m.Stamp != nil && !m.Stamp.By(c.Dir.Members[member].Key) {
		return
	}
	for _, i := range m.Items {
		o := c.Open[i.Number]
		if o == nil {
			continue
		}
		w := &o.Own
		if w.heard == nil {
			n := len(c.Dir.Members)
			w.heard, w.stamps = make([]heard, n), make([]bft.Signed[stampBody], n)
			w.orders = make([]*bft.Signed[orderBody], n)
		}
		c.hear(env, w, member, &m, &i)
		if i.Full && i.Result.Digest() == i.Digest {
			o.Results[i.Digest] = i.Result
		}
		if d, ok := confirmed(w.heard, c.Dir.Quorum(), c.Dir.Witness()); ok {
			if r, ok := o.Results[d]; ok {
				c.End(env, o, r)
			}
		}
	}
}

// hear takes the word of a member on an operation.
func (c *client) hear(env *protocol.Env[bft.Message], w *words, member int, m *replies, i *replyItem) {
	h := &w.heard[member]
	switch i.Word {
	case speculated:
		if m.Stamp == nil || i.Seq > m.Stamp.Body().Seq || h.speculated && m.Stamp.Body().View < h.stamp.View {
			return
		}
		h.speculated, h.stamp, h.result = true, *m.Stamp.Body(), i.Digest
		w.stamps[member], w.orders[member] = *m.Stamp, m.Order
		c.accuse(env, w, m.Order)
		if w.since == 0 && len(c.same(w, h)) >= c.Dir.Quorum() {
			w.since = c.Tick
		}
	case final:
		h.final, h.concluded = true, i.Digest
		fallthrough // it is certified as well
	case held:
		if i.History != (bft.Digest{}) {
			h.certified, h.at = true, heldAt{i.Seq, i.History, i.Digest}
		}
	}
}

// accuse shows the members that their primary has given them different orders, if it has.
func (c *client) accuse(env *protocol.Env[bft.Message], w *words, order *bft.Signed[orderBody]) {
	if order == nil {
		return
	}
	key := c.Dir.Primary(order.Body().View).Key
	for _, o := range w.orders {
		if o != nil && contradict(o.Body(), order.Body()) && o.By(key) && order.By(key) {
			for _, m := range c.Dir.Members {
				env.Send(m.ID, misdeed{*o, *order})
			}
			return
		}
	}
}

// same returns the stamps of those that have said the same of an operation.
func (c *client) same(w *words, h *heard) (out []bft.Signed[stampBody]) {
	for i, o := range w.heard {
		if o.speculated && o.stamp == h.stamp && o.result == h.result {
			out = append(out, w.stamps[i])
		}
	}
	return out
}

// certify sends the members the certificates of operations of which a quorum, but not everybody,
// has said the same for a while: those that have them on disk say so.
func (c *client) certify(env *protocol.Env[bft.Message]) {
	var all []certified
	for _, n := range c.Numbers() {
		w := &c.Open[n].Own
		if w.since == 0 || c.Tick-w.since < waitForAll || w.sent > 0 && c.Tick-w.sent < certifyTick {
			continue
		}
		for i := range w.heard {
			stamps := c.same(w, &w.heard[i])
			if !w.heard[i].speculated || len(stamps) < c.Dir.Quorum() {
				continue
			}
			w.sent = c.Tick
			all = addTo(all, bft.Join(stamps), n)
			break
		}
	}
	for _, m := range all {
		m.Session = c.Session
		for _, p := range c.Dir.Members {
			env.Send(p.ID, m)
		}
	}
}

// addTo adds an operation to those of its certificate: operations of one batch have the same.
func addTo(all []certified, proof bft.Certificate[stampBody], n bft.Number) []certified {
	for i := range all {
		if all[i].Proof.Body() == proof.Body() {
			all[i].Numbers = append(all[i].Numbers, n)
			return all
		}
	}
	return append(all, certified{Proof: proof, Numbers: []bft.Number{n}})
}

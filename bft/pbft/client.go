package pbft

import (
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Client is a client of a group, a protocol.Node. Its application gives it a bft.Call and gets
// bft.First, bft.Withdrawn and bft.Done.
type client struct {
	kit.Client[words]
	st     *statements
	views  []bft.View             // by member
	scores []score                // by member
	shown  *bft.Signed[earlyBody] // the last lie that the members were shown
}

// words are what is known of an operation.
type words struct {
	heard   []heard // by member
	guess   *bft.Digest
	guessBy int // a member
	early   *bft.Signed[earlyBody]
	view    bft.View
}

// operation is a call that is ordered.
type operation = kit.Operation[words]

// NewClient returns a client node.
func newClient(cfg bft.ClientConfig) (*client, error) {
	c := &client{st: newStatements(cfg.Scheme)}
	if err := c.Init("pbft", cfg, &c.st.Statements); err != nil {
		return nil, err
	}
	c.forget()
	return c, nil
}

// forget forgets what members have said.
func (c *client) forget() {
	n := len(c.Dir.Members)
	c.views, c.scores = make([]bft.View, n), make([]score, n)
	for i := range c.views {
		c.views[i] = c.Dir.Epoch.First()
	}
}

// Receive is part of protocol.Node.
func (c *client) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if from == protocol.App {
		c.OnApp(env, msg)
	}
	if m, ok := msg.(kit.Links); ok {
		guessed := c.guessed()
		if c.OnLinks(env, m) {
			c.forget()
			withdraw(env, guessed)
		}
	}
	i := c.Member(from)
	if i < 0 {
		return
	}
	switch m := msg.(type) {
	case replies:
		if !c.OtherEpoch(env, from, m.View.Epoch()) {
			c.onReply(env, i, m)
		}
	case earlyReply:
		c.onEarly(env, m.Reply)
	case kit.ReadReply:
		c.OnReadReply(env, i, m)
	}
}

// end tells the application what became of a call.
func (c *client) end(env *protocol.Env[bft.Message], o *operation, r bft.Result) {
	if w := &o.Own; w.guess != nil {
		right := *w.guess == r.Digest()
		c.scores[w.guessBy].note(right)
		if !right && c.shown != w.early {
			c.shown = w.early
			for _, m := range c.Dir.Members {
				env.Send(m.ID, lie{*w.early})
			}
		}
	}
	c.End(env, o, r)
}

func (c *client) onReply(env *protocol.Env[bft.Message], member int, m replies) {
	if m.View > c.views[member] {
		c.views[member] = m.View
		c.endGuesses(env)
	}
	if m.Session != c.Session {
		return
	}
	for _, i := range m.Items {
		o := c.Open[i.Number]
		if o == nil {
			continue
		}
		if o.Own.heard == nil {
			o.Own.heard = make([]heard, len(c.Dir.Members))
		}
		said := o.Own.heard
		if h := (heard{true, i.Tentative, m.View, i.Seq, i.Digest}); h.newer(said[member]) {
			said[member] = h
		}
		if i.Full && i.Result.Digest() == i.Digest {
			o.Results[i.Digest] = i.Result
		}
		if d, ok := confirmed(said, c.Dir.Quorum(), c.Dir.Witness(), !c.Config.Ordered); ok {
			if r, ok := o.Results[d]; ok {
				c.end(env, o, r)
			}
		}
	}
}

// vouched returns the view of which an honest member says that it has come.
func (c *client) vouched() bft.View {
	views := slices.Clone(c.views)
	slices.Sort(views)
	return views[len(views)-c.Dir.Witness()]
}

// endGuesses takes back the guesses of views that are over.
func (c *client) endGuesses(env *protocol.Env[bft.Message]) {
	v := c.vouched()
	for _, o := range c.guessed() {
		if o.Own.view < v {
			o.Own.guess = nil
			withdraw(env, []*operation{o})
		}
	}
}

// guessed returns the operations of which there is a guess.
func (c *client) guessed() (out []*operation) {
	for _, n := range c.Numbers() {
		if o := c.Open[n]; o.Own.guess != nil {
			out = append(out, o)
		}
	}
	return out
}

func withdraw(env *protocol.Env[bft.Message], guessed []*operation) {
	for _, o := range guessed {
		env.Send(protocol.App, bft.Withdrawn{ID: o.Call.ID})
	}
}

// onEarly takes the early reply of a primary for a guess, if its view is vouched for and its
// guesses have been good. It confirms nothing.
func (c *client) onEarly(env *protocol.Env[bft.Message], e bft.Signed[earlyBody]) {
	b := e.Body()
	by := c.Member(c.Dir.Primary(b.View).ID)
	if b.Client != c.Config.ID || b.Session != c.Session || b.View != c.vouched() || !e.By(c.Dir.Members[by].Key) {
		return
	}
	for _, i := range b.Items {
		o := c.Open[i.Number]
		if o == nil || o.Own.guess != nil {
			continue
		}
		d := i.Result.Digest()
		o.Own.guess, o.Own.guessBy, o.Own.view, o.Own.early = &d, by, b.View, &e
		o.Results[d] = i.Result
		if !c.scores[by].off {
			env.Send(protocol.App, bft.First{ID: o.Call.ID, Result: i.Result})
		}
	}
}

// score is how often a member's last early replies were right. One that was wrong too often is not
// believed for a while: above one in a hundred it is off, and on again below half of that.
type score struct {
	right []bool
	wrong int
	off   bool
}

const scored = 200

func (s *score) note(right bool) {
	if s.right = append(s.right, right); !right {
		s.wrong++
	}
	if len(s.right) > scored {
		if !s.right[0] {
			s.wrong--
		}
		s.right = s.right[1:]
	}
	switch {
	case s.wrong*100 > scored:
		s.off = true
	case s.wrong*200 < scored:
		s.off = false
	}
}

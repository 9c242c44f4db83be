package pbft

import (
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// tally counts the commands.
type tally struct{ noService }

func (tally) Apply(s keyspace.Space, _ time.Duration, _ []byte) []byte {
	b, _ := s.Get([]byte("n"))
	n, _ := strconv.Atoi(string(b))
	b = strconv.AppendInt(nil, int64(n)+1, 10)
	s.Put([]byte("n"), b)
	return b
}

// counting is member 2 of a group with two clients, each of which counts once: 9 in the first
// place, and 10 in the second.
type counting struct {
	*group
	t   *testing.T
	r   *replica
	env *protocol.Env[bft.Message]
	of  [2]proposal
}

func newCounting(t *testing.T) *counting {
	t.Helper()
	c := &counting{group: newGroup(), t: t}
	c.dir.Clients[10] = c.sign(10).Key()
	c.r, c.env = c.member(t, 2)
	c.r.Config.Service = tally{}
	for i := range c.of {
		client := protocol.ID(9 + i)
		m := c.r.st.Requests.Sign(c.scheme, c.sign(client), bft.Request{Client: client, Session: 1, First: 1,
			Operations: []bft.Operation{{}}})
		b := kit.Batch{Entries: []kit.BatchEntry{{Request: c.r.st.DigestOfRequest(m.Body())}}}
		o := orderBody{Seq: bft.Seq(i + 1), Batch: c.r.st.DigestOf(b)}
		c.of[i] = proposal{c.r.st.orders.Sign(c.scheme, c.sign(1), o), b, []bft.Signed[bft.Request]{m}}
	}
	return c
}

// prepare has a place proposed and prepared by the others.
func (c *counting) prepare(i int) {
	c.r.Receive(c.env, 1, c.of[i])
	o := *c.of[i].Order.Body()
	for id := protocol.ID(3); id <= 4; id++ {
		c.r.Receive(c.env, id, prepare{c.r.st.votes.Sign(c.scheme, c.sign(id), voteBody(o))})
	}
}

// show has a client show what a member has signed of its operation in view 0, and reports whether
// the view is given up for that.
func (c *counting) show(client, by protocol.ID, value string) bool {
	e := earlyBody{Client: client, Session: 1, Items: []earlyItem{{1, executedTo(value)}}}
	v := c.r.View
	c.r.Receive(c.env, client, lie{c.r.st.early.Sign(c.scheme, c.sign(by), e)})
	return c.r.View > v
}

// TestLieEndsTheView: an early reply of the primary, and another result that was executed in its
// view, end the view at once. The members pass that on.
func TestLieEndsTheView(t *testing.T) {
	c := newCounting(t)
	c.r.Receive(c.env, 1, c.of[0])
	if c.show(9, 1, "7") {
		t.Error("nothing is executed, and an early reply is a lie")
	}
	c.prepare(0)
	if c.show(9, 1, "1") || c.show(9, 3, "7") || c.show(10, 1, "7") {
		t.Error("the right result, or another member's, or of what was not executed, is a lie")
	}
	if !c.show(9, 1, "7") || c.r.Standing().Caught != 1 || len(effects[lie](c.env)) != 3 {
		t.Errorf("the primary is not caught: %+v, and %d are told", c.r.Standing(), len(effects[lie](c.env)))
	}
	if c.show(9, 1, "7") {
		t.Error("a lie of the view before ends the next one")
	}
}

// TestCommittedInTheViewIsNoProof: an honest primary has proposed two operations. The first became
// null in a later view, of which this replica hears only that. It executes the second one, which is
// prepared in the view in which it still is, with another result than the primary.
func TestCommittedInTheViewIsNoProof(t *testing.T) {
	c := newCounting(t)
	for id := protocol.ID(3); id <= 4; id++ {
		c.r.Receive(c.env, id, commit{Order: orderBody{View: 1, Seq: 1}, Done: true})
	}
	c.prepare(1)
	if c.r.Executed != 2 || c.r.View != 0 || !c.r.Active {
		t.Fatalf("it has not executed both: %+v", c.r.Standing())
	}
	if c.show(10, 1, "2") {
		t.Error("an honest primary is caught")
	}
}

// TestExecutedBeforeTheViewIsNoProof: this replica has committed that the first operation is null,
// as it has heard from a later view, when a view begins that proposes it again. What comes after it
// has other results here than at the primary.
func TestExecutedBeforeTheViewIsNoProof(t *testing.T) {
	for _, heard := range []bool{false, true} {
		c := newCounting(t)
		first := *c.of[0].Order.Body()
		if heard {
			for id := protocol.ID(3); id <= 4; id++ {
				c.r.Receive(c.env, id, commit{Order: orderBody{View: 9, Seq: 1}, Done: true})
			}
		}
		c.r.Receive(c.env, 1, c.of[0])
		c.r.View = 4 // which member 1 leads as well
		s := startBody{View: 4, Orders: []bft.Signed[orderBody]{
			c.r.st.orders.Sign(c.scheme, c.sign(1), orderBody{4, 1, first.Batch})}}
		c.r.enter(c.env, c.r.st.starts.Sign(c.scheme, c.sign(1), s))
		second := *c.of[1].Order.Body()
		c.of[1].Order = c.r.st.orders.Sign(c.scheme, c.sign(1), orderBody{4, 2, second.Batch})
		for i, b := range []bft.Digest{first.Batch, second.Batch} {
			if i == 1 {
				c.r.Receive(c.env, 1, c.of[1])
			}
			for id := protocol.ID(3); id <= 4; id++ {
				v := voteBody{4, bft.Seq(i + 1), b}
				c.r.Receive(c.env, id, prepare{c.r.st.votes.Sign(c.scheme, c.sign(id), v)})
			}
		}
		if c.r.Executed != 2 {
			t.Fatalf("heard %v: it has not executed both: %+v", heard, c.r.Standing())
		}
		e := earlyBody{View: 4, Client: 10, Session: 1, Items: []earlyItem{{1, executedTo("2")}}}
		if heard == false {
			e.Items[0].Result = executedTo("7")
		}
		c.r.Receive(c.env, 10, lie{c.r.st.early.Sign(c.scheme, c.sign(1), e)})
		if caught := c.r.Standing().Caught > 0; caught == heard {
			t.Errorf("heard %v: the primary is caught: %v", heard, caught)
		}
	}
}

// TestLiesInLaterEpochs: in the first view of an epoch a lie is proven to a member that has come to
// its beginning, whatever it had heard before, and also if its process has begun again since.
func TestLiesInLaterEpochs(t *testing.T) {
	for _, again := range []bool{false, true} {
		c := newCounting(t)
		for id := protocol.ID(3); id <= 4; id++ { // without its primary the place is null
			c.r.Receive(c.env, id, commit{Order: orderBody{View: 1, Seq: 1}, Done: true})
		}
		c.r.Receive(c.env, 77, kit.Links{Links: []kit.Link{c.link(c.r, 1, c.afterRotation(t), 1, 3, 4)}})
		if again {
			d := disk{}
			for _, e := range c.env.Out {
				if e.Kind == protocol.KindPut {
					d[string(e.Key)] = e.Value
				}
			}
			next, err := newReplica(c.r.Config)
			if err != nil {
				t.Fatal(err)
			}
			c.r, c.env = next, protocol.NewEnv[bft.Message](d, 1, nil)
			c.r.Start(c.env, nil)
		}
		now := bft.Epoch(1).First()
		if c.r.Committed != 1 || c.r.View != now {
			t.Fatalf("it stands at %+v", c.r.Standing())
		}
		o := orderBody{View: now, Seq: 2, Batch: c.of[0].Order.Body().Batch}
		c.of[0].Order = c.r.st.orders.Sign(c.scheme, c.sign(1), o)
		c.r.Receive(c.env, 1, c.of[0])
		c.r.Receive(c.env, 3, prepare{c.r.st.votes.Sign(c.scheme, c.sign(3), voteBody(o))})
		if c.r.Receive(c.env, 4, prepare{c.r.st.votes.Sign(c.scheme, c.sign(44), voteBody(o))}); c.r.Executed != 2 {
			t.Fatalf("it stands at %+v", c.r.Standing())
		}
		for caught, value := range []string{"1", "7"} {
			e := earlyBody{View: now, Client: 9, Session: 1, Items: []earlyItem{{1, executedTo(value)}}}
			if c.r.Receive(c.env, 9, lie{c.r.st.early.Sign(c.scheme, c.sign(1), e)}); c.r.Caught != caught {
				t.Errorf("begun again: %v: a first reply of %q, and %d lies are caught", again, value, c.r.Caught)
			}
		}
	}
}

// TestClientShowsLies: a client shows the members the early reply that was wrong, once.
func TestClientShowsLies(t *testing.T) {
	for _, first := range []string{"lie", "truth"} {
		a := ask(t, false)
		a.early(first)
		for id := protocol.ID(2); id <= 4; id++ {
			a.reply(id, 0, false, "truth")
		}
		a.confirmed("three committed replies", "truth")
		if shown := len(effects[lie](a.env)); shown != map[string]int{"lie": 4, "truth": 0}[first] {
			t.Errorf("a first reply with the %s is shown to %d members", first, shown)
		}
	}
}

package replicatedcommit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// request is what has a contest's server vote on an attempt of a transaction that reads and writes keys of no version.
func (c *contest) request(n int, reads, writes string) Prepare {
	c.now += time.Millisecond
	t := store.Txn{ID: store.TxnID{Time: uint64(c.now), Client: store.ClientID(n + 1)}, Priority: c.ages[n]}
	for _, k := range reads {
		t.Reads = append(t.Reads, store.Read{Key: store.Key(k)})
	}
	for _, k := range writes {
		t.Writes = append(t.Writes, store.Write{Key: store.Key(k), Bytes: []byte{byte('0' + n)}})
	}
	return Prepare{Txn: t, Shards: []uint32{0}, Hold: true}
}

// hold has the server hold a request back.
func (c *contest) hold(n int, reads, writes string) Prepare {
	c.Helper()
	m := c.request(n, reads, writes)
	c.wait(m)
	return m
}

func (c *contest) wait(m Prepare) {
	c.Helper()
	c.give(10, m)
	c.wantVotes()
	if c.server.holding.byTxn[m.Txn.ID] == nil {
		c.Fatalf("the request of %v is not held back", m.Txn.ID)
	}
}

// told is the votes that the server has just sent, by their transactions, and in order.
func (c *contest) told() (votes []Vote) {
	for _, e := range c.env.Out {
		if v, ok := e.Msg.(Vote); ok && e.Kind == protocol.KindSend {
			votes = append(votes, v)
		}
	}
	return votes
}

// wantVotes expects these votes in the last event, and no other. Values that go with refusals do not count.
func (c *contest) wantVotes(want ...Vote) {
	c.Helper()
	got := c.told()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Vote{}, "Hint", "Current")); diff != "" {
		c.Errorf("votes (-want +got):\n%s", diff)
	}
}

func yes(m Prepare) Vote { return Vote{ID: m.Txn.ID, State: Yes} }
func no(m Prepare, why store.Reason) Vote {
	return Vote{ID: m.Txn.ID, State: No, Reason: why}
}

func (c *contest) wantValue(key store.Key, want string) {
	c.Helper()
	var got string
	c.do(func() { got = string(value(c.env, key).Bytes) })
	if got != want {
		c.Errorf("%s is %q, want %q", key, got, want)
	}
}

// TestHeld: a vote that may wait comes when the keys are free or there is another reason to refuse, with the decision that brought it about.
func TestHeld(t *testing.T) {
	for _, tc := range []struct {
		name           string
		theirs, writes string // of the transaction that is in the way
		reads, mine    string // of the one that waits
		commit         bool
		want           store.Reason
	}{
		{"the writer is aborted", "", "k", "k", "l", false, store.NoReason},
		{"the writer is committed", "", "k", "k", "l", true, store.StaleRead},
		{"the writer of a key that is written blindly is committed", "", "k", "", "k", true, store.NoReason},
		{"the writer of a key that is read and written is aborted", "", "k", "k", "k", false, store.NoReason},
		{"the reader is committed", "k", "o", "", "k", true, store.NoReason},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newContest(t, 0)
			holder, v := c.try(5, tc.theirs, tc.writes)
			c.wantReason(v, store.NoReason)
			m := c.hold(1, tc.reads, tc.mine)
			c.give(10, Decide{ID: holder, Shards: []uint32{0}, Commit: tc.commit})
			state := Aborted
			if tc.commit {
				state = Committed
			}
			decided := Vote{ID: holder, State: state}
			if tc.want == store.NoReason {
				c.wantVotes(decided, yes(m))
			} else {
				c.wantVotes(decided, no(m, tc.want))
				current := c.told()[len(c.told())-1].Current
				if len(current) != 1 || current[0].Locked || current[0].Value.Version != holder {
					t.Errorf("the refusal brings %+v, want what the writer has written", current)
				}
			}
			if n := len(c.server.holding.byTxn); n != 0 {
				t.Errorf("%d requests are still held back", n)
			}
			if !slices.ContainsFunc(c.env.Out, func(e protocol.Effect[Message]) bool {
				return e.Kind == protocol.KindStop && e.Timer == (holdTimer{m.Txn.ID})
			}) {
				t.Error("its timer is not stopped")
			}
		})
	}
}

// TestNotHeld: who does not ask for it is refused at once, and so is what no wait can help.
func TestNotHeld(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(0, "", "k")
	m := c.request(1, "k", "l")
	m.Hold = false
	c.give(10, m)
	c.wantVotes(no(m, store.Locked))
	c.decide(holder, true)

	m = c.request(2, "k", "m") // of the version before
	c.give(10, m)
	c.wantVotes(no(m, store.StaleRead))
	m = c.request(3, "", "n")
	c.give(10, m)
	c.wantVotes(yes(m))

	m = c.request(4, "n", "")
	m.ReadOnly = true
	c.give(10, m)
	c.wantVotes(no(m, store.Locked))
}

// TestHeldKeepsItsKeys: while a request waits younger ones are refused what it needs, and it waits for older ones to be done, also if they have no vote.
func TestHeldKeepsItsKeys(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.request(1, "", "kl")
	m.Txn.ID.Time += uint64(time.Second) // above the version of the older one
	c.wait(m)
	_, v := c.try(2, "", "l")
	c.wantReason(v, store.Reserved)
	older := c.request(0, "", "k")
	older.Hold = false
	c.give(10, older)
	c.wantVotes(no(older, store.Locked))
	c.give(10, Decide{ID: holder, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: holder, State: Committed}) // the older one is next
	again, v := c.try(0, "", "k")
	c.wantReason(v, store.NoReason)
	c.give(10, Decide{ID: again, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: again, State: Committed}, yes(m))
	c.decide(m.Txn.ID, true)
	c.wantValue("k", "1")
}

// TestOldestHeldFirst: of those that wait for one key the oldest gets it, and the others go on waiting.
func TestOldestHeldFirst(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	old, middle, young := c.request(1, "", "k"), c.request(3, "", "k"), c.request(4, "", "k")
	for _, m := range []Prepare{young, old, middle} {
		c.wait(m)
	}
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted}, yes(old))
	c.give(10, Decide{ID: old.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: old.Txn.ID, State: Committed}, yes(middle))
	c.give(10, Decide{ID: middle.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: middle.Txn.ID, State: Committed}, yes(young))
}

// holdFor returns how long the server sets out to hold the request back that it was just given; 0: for ever.
func (c *contest) holdFor(id store.TxnID) time.Duration {
	for _, e := range c.env.Out {
		if e.Kind == protocol.KindAfter && e.Timer == (holdTimer{id}) {
			return e.Delay
		}
	}
	return 0
}

// TestHeldNoLonger: a vote waits for a round trip, and is a refusal then. Behind a transaction that nobody could decide it does not wait at all, or no longer than that.
func TestHeldNoLonger(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "kl")
	if got := c.holdFor(m.Txn.ID); got != c.server.cfg.RoundTrip {
		t.Errorf("it waits for %v, want a round trip", got)
	}
	c.do(func() { c.server.Expire(c.env, resolveTimer{holder}) }) // it was not decided in time
	late := c.request(2, "", "k")
	c.give(10, late)
	c.wantVotes(no(late, store.Locked))
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) })
	c.wantVotes(no(m, store.Locked))
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) }) // as nothing would stop it
	c.wantVotes()
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted})
}

// TestHeldBehindBlocked: when something else of what it needs changes, who waits behind a transaction that may be blocked by now is refused.
func TestHeldBehindBlocked(t *testing.T) {
	c := newContest(t, 0)
	blocked, _ := c.try(5, "", "k")
	free, _ := c.try(4, "", "l")
	m := c.hold(1, "", "kl")
	c.do(func() { c.server.Expire(c.env, resolveTimer{blocked}) })
	c.give(10, Decide{ID: free, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: free, State: Aborted}, no(m, store.Locked))
}

// TestHeldIsStale: others may commit over this site's refusal what the request has read. Then it waits no longer, though its other key is still locked.
func TestHeldIsStale(t *testing.T) {
	c := newContest(t, 0)
	c.try(5, "", "l")
	m := c.hold(1, "k", "l")
	other, v := c.try(2, "", "k")
	c.wantReason(v, store.Reserved)
	c.give(10, Decide{ID: other, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: other, State: Committed, Reason: store.Reserved}, no(m, store.StaleRead))
}

// TestHeldIsRepeated: a request that comes again, marked or not, is one, and waits no longer for it.
func TestHeldIsRepeated(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	for _, again := range []bool{true, false} {
		m.Hold = again
		c.give(10, m)
		c.wantVotes()
		if got := c.holdFor(m.Txn.ID); got != 0 {
			t.Errorf("it waits anew, for %v", got)
		}
	}
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted}, yes(m))
	c.give(10, m)
	c.wantVotes(yes(m))
}

// TestAskEndsHold: who is asked about a request that waits votes no, for good, and what the transaction writes is known if it is committed all the same.
func TestAskEndsHold(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	c.give(20, Ask{ID: m.Txn.ID, Shards: []uint32{0}})
	c.wantVotes(no(m, store.Fenced))
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted})
	c.give(10, m)
	c.wantVotes(no(m, store.Fenced))
	c.give(10, Decide{ID: m.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(Vote{ID: m.Txn.ID, State: Committed, Reason: store.Fenced})
	c.wantValue("k", "1")
}

// TestDecideEndsHold: the other sites may decide meanwhile. What is committed is applied at once, without asking anybody what it is; what is aborted is next in line for its keys.
func TestDecideEndsHold(t *testing.T) {
	for _, commit := range []bool{true, false} {
		c := newContest(t, 0)
		holder, _ := c.try(5, "", "k")
		m := c.hold(1, "", "kl")
		c.give(10, Decide{ID: m.Txn.ID, Shards: []uint32{0}, Commit: commit})
		free := store.NoReason
		if commit {
			c.wantVotes(Vote{ID: m.Txn.ID, State: Committed})
			c.wantValue("k", "1")
		} else {
			c.wantVotes(Vote{ID: m.Txn.ID, State: Aborted})
			c.wantValue("k", "")
			free = store.Reserved
		}
		for _, e := range c.env.Out {
			if _, ok := e.Msg.(Fetch); ok {
				t.Error("the server asks for what it has")
			}
		}
		_, v := c.try(2, "", "l")
		c.wantReason(v, free)
		c.give(10, Decide{ID: holder, Shards: []uint32{0}}) // wakes nobody
		c.wantVotes(Vote{ID: holder, State: Aborted})
	}
}

// TestHoldIsForgotten: a crash while a request waits is the loss of a message.
func TestHoldIsForgotten(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	again, err := NewServer(c.server.cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.server, c.env = again, protocol.NewEnv[Message](c.disk, 11, rand.New(rand.NewPCG(1, 3)))
	c.do(func() { c.server.Start(c.env, nil) })
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) })
	c.wantVotes()
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted})
	c.give(10, m)
	c.wantVotes(yes(m))
}

// TestOldHeld: a request that waits while its time is forgotten is not voted on.
func TestOldHeld(t *testing.T) {
	c := newContest(t, 0)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	c.do(func() { c.server.raiseOld(c.env, m.Txn.ID.Time) })
	c.give(10, Decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(Vote{ID: holder, State: Aborted}, Vote{ID: m.Txn.ID, State: Old, Reason: store.Old})
}

// TestHoldIsBounded: the requests that wait are bounded, in all and for each key. One more is refused at once.
func TestHoldIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name            string
		all, most, want int
	}{
		{"in all", 3, 3, 3},
		{"for a key", 10_000, maxQueue, maxQueue},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newContest(t, 0)
			c.server.cfg.MaxWaiting = tc.all
			holder, _ := c.try(5, "", "k")
			for range tc.want {
				c.hold(1, "", "k")
			}
			m := c.request(1, "", "k")
			c.give(10, m)
			c.wantVotes(no(m, store.Locked))
			if tc.name != "in all" {
				other, _ := c.try(4, "", "o")
				c.hold(1, "", "o")
				c.decide(other, false)
			}
			c.give(10, Decide{ID: holder, Shards: []uint32{0}})
			if n := len(c.server.holding.byTxn); n >= tc.want {
				t.Errorf("%d requests wait after the key was left", n)
			}
		})
	}
}

// TestOneSiteHolds: a client has the nearest site wait, the first time that it asks, and only if it was told to. Who has read nothing does not know which one that is.
func TestOneSiteHolds(t *testing.T) {
	c, err := NewClient(Config{ID: 99, Layout: layout(3, 2), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[Message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	sent := func(call func()) string {
		t.Helper()
		env.Begin(now)
		call()
		text := ""
		for _, e := range env.Out {
			if m, ok := e.Msg.(CommitRequest); ok && e.Kind == protocol.KindSend {
				text += fmt.Sprintf("%d:%v ", e.To, m.Hold)
			}
		}
		return text
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the sites are asked %q, want %q", what, got, want)
		}
	}
	var id store.TxnID
	submit := func(ref uint64, hold bool) func() {
		return func() {
			c.Receive(env, protocol.App, Submit{Ref: ref, Writes: []store.Write{{Key: "k"}}, Hold: hold})
			id = c.submitRefs[ref]
		}
	}
	const nobody = "10:false 20:false 30:false "
	sent(func() { c.Start(env, nil) })
	expect("nothing was read", sent(submit(1, true)), nobody)
	c.near = [][]time.Duration{{100 * time.Millisecond, 0}, {0, time.Millisecond}, {90 * time.Millisecond, 90 * time.Millisecond}}
	expect("it is not told to", sent(submit(2, false)), nobody)
	expect("it is", sent(submit(3, true)), "10:false 20:true 30:false ")
	silent := c.silent
	c.silent = []time.Duration{0, 0, 1}
	expect("a site is down", sent(submit(5, true)), "10:false ")
	first := SiteVote{ID: id, Shards: []uint32{0}, Yes: true}
	expect("the first one has voted", sent(func() { c.Receive(env, 10, first) }), "20:false 30:false ")
	c.silent, id = silent, c.submitRefs[3]
	now += 2 * roundTrip
	expect("it asks again", sent(func() { c.Expire(env, submitTimer{id}) }), nobody)
	txn := c.submits[id].txn
	expect("it gives up", sent(func() { c.Receive(env, protocol.App, Cancel{Ref: 3}) }), "")
	expect("it asks what became of it", sent(func() { c.Receive(env, protocol.App, Query{Ref: 4, Txn: txn}) }), nobody)
}

// TestHoldIsPassedOn: the mark goes from the client to each shard of the site, also through a gate.
func TestHoldIsPassedOn(t *testing.T) {
	for _, hold := range []bool{true, false} {
		g := newGateBench(t, 10)
		txn := store.Txn{ID: store.TxnID{Time: uint64(time.Hour), Client: 1}, Writes: []store.Write{{Key: "k0"}, {Key: "k1"}}}
		out := g.give(protocol.App, GateCommit{Ref: 1, Txn: txn, Hold: hold})
		if len(out) != 1 || out[0].To != 10 {
			t.Fatalf("the gate sends %v", out)
		}
		co, err := NewCoordinator(Config{ID: 10, Layout: layout(3, 2)})
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[Message](nil, 10, rand.New(rand.NewPCG(1, 1)))
		env.Begin(time.Hour)
		co.Receive(env, 99, out[0].Msg)
		n := 0
		for _, e := range env.Out {
			if m, ok := e.Msg.(Prepare); ok && m.Hold == hold {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of 2 shards are asked with hold %v", n, hold)
		}
	}
}

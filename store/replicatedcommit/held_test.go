package replicatedcommit

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// request is what has a contest's server vote on an attempt of a transaction that reads and writes
// keys of no version.
func (c *contest) request(n int, reads, writes string) prepare {
	c.now += time.Millisecond
	t := store.Txn{ID: store.TxnID{Time: uint64(c.now), Client: store.ClientID(n + 1)}, Priority: c.ages[n]}
	for _, k := range reads {
		t.Reads = append(t.Reads, store.Read{Key: store.Key(k)})
	}
	for _, k := range writes {
		t.Writes = append(t.Writes, store.Write{Key: store.Key(k), Bytes: []byte{byte('0' + n)}})
	}
	return prepare{Txn: t, Shards: []uint32{0}, Hold: true}
}

// hold has the server hold a request back.
func (c *contest) hold(n int, reads, writes string) prepare {
	c.Helper()
	m := c.request(n, reads, writes)
	c.wait(m)
	return m
}

func (c *contest) wait(m prepare) {
	c.Helper()
	c.give(10, m)
	c.wantVotes()
	if c.server.holding.byTxn[m.Txn.ID] == nil {
		c.Fatalf("the request of %v is not held back", m.Txn.ID)
	}
}

// told is the votes that the server has just sent, by their transactions, and in order.
func (c *contest) told() (votes []vote) {
	for _, e := range c.env.Out {
		if v, ok := e.Msg.(vote); ok && e.Kind == protocol.KindSend {
			votes = append(votes, v)
		}
	}
	return votes
}

// wantVotes expects these votes in the last event, and no other. Values that go with refusals do
// not count.
func (c *contest) wantVotes(want ...vote) {
	c.Helper()
	got := c.told()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(vote{}, "Hint", "Current")); diff != "" {
		c.Errorf("votes (-want +got):\n%s", diff)
	}
}

func votedYes(m prepare) vote { return vote{ID: m.Txn.ID, State: yes} }
func votedNo(m prepare, why store.Reason) vote {
	return vote{ID: m.Txn.ID, State: no, Reason: why}
}

func (c *contest) wantValue(key store.Key, want string) {
	c.Helper()
	var got string
	c.do(func() { got = string(values.At(c.env, key).Bytes) })
	if got != want {
		c.Errorf("%s is %q, want %q", key, got, want)
	}
}

// TestHeld: a vote that may wait comes when the keys are free or there is another reason to refuse,
// with the decision that brought it about.
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
			c := newContest(t)
			holder, v := c.try(5, tc.theirs, tc.writes)
			c.wantReason(v, store.NoReason)
			m := c.hold(1, tc.reads, tc.mine)
			c.give(10, decide{ID: holder, Shards: []uint32{0}, Commit: tc.commit})
			state := aborted
			if tc.commit {
				state = committed
			}
			decided := vote{ID: holder, State: state}
			if tc.want == store.NoReason {
				c.wantVotes(decided, votedYes(m))
			} else {
				c.wantVotes(decided, votedNo(m, tc.want))
				current := c.told()[len(c.told())-1].Current
				if len(current) != 1 || current[0].Locked || current[0].Value.Version != holder {
					t.Errorf("the refusal brings %+v, want what the writer has written", current)
				}
			}
			if n := len(c.server.holding.byTxn); n != 0 {
				t.Errorf("%d requests are still held back", n)
			}
			if !slices.ContainsFunc(c.env.Out, func(e protocol.Effect[message]) bool {
				return e.Kind == protocol.KindStop && e.Timer == (holdTimer{m.Txn.ID})
			}) {
				t.Error("its timer is not stopped")
			}
		})
	}
}

// TestNotHeld: who does not ask for it is refused at once, and so is what no wait can help.
func TestNotHeld(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(0, "", "k")
	m := c.request(1, "k", "l")
	m.Hold = false
	c.give(10, m)
	c.wantVotes(votedNo(m, store.Locked))
	c.decide(holder, true)

	m = c.request(2, "k", "m") // of the version before
	c.give(10, m)
	c.wantVotes(votedNo(m, store.StaleRead))
	m = c.request(3, "", "n")
	c.give(10, m)
	c.wantVotes(votedYes(m))

	m = c.request(4, "n", "")
	m.ReadOnly = true
	c.give(10, m)
	c.wantVotes(votedNo(m, store.Locked))
}

// TestHeldKeepsItsKeys: while a request waits younger ones are refused what it needs, and it waits
// for older ones to be done, also if they have no vote.
func TestHeldKeepsItsKeys(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.request(1, "", "kl")
	m.Txn.ID.Time += uint64(time.Second) // above the version of the older one
	c.wait(m)
	_, v := c.try(2, "l", "m")
	c.wantReason(v, store.Reserved)
	_, v = c.try(3, "", "l")
	c.wantReason(v, store.Reserved)
	older := c.request(0, "", "k")
	older.Hold = false
	c.give(10, older)
	c.wantVotes(votedNo(older, store.Locked))
	c.give(10, decide{ID: holder, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: holder, State: committed}) // the older one is next
	again, v := c.try(0, "", "k")
	c.wantReason(v, store.NoReason)
	c.give(10, decide{ID: again, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: again, State: committed}, votedYes(m))
	c.decide(m.Txn.ID, true)
	c.wantValue("k", "1")
}

// TestOldestHeldFirst: of those that wait for one key the oldest gets it, and the others go on
// waiting.
func TestOldestHeldFirst(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	old, middle, young := c.request(1, "", "k"), c.request(3, "", "k"), c.request(4, "", "k")
	for _, m := range []prepare{young, old, middle} {
		c.wait(m)
	}
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, votedYes(old))
	c.give(10, decide{ID: old.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: old.Txn.ID, State: committed}, votedYes(middle))
	c.give(10, decide{ID: middle.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: middle.Txn.ID, State: committed}, votedYes(young))
}

// TestHeldEach: those that wait for different keys get them all when they are left at once.
func TestHeldEach(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "kl")
	one, other := c.hold(1, "", "k"), c.hold(2, "", "l")
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, votedYes(one), votedYes(other))
}

// TestHeldIsNext: who has reserved a key may leave it without having had it: it has read what it
// needs, or is not tried again.
func TestHeldIsNext(t *testing.T) {
	for _, done := range []bool{true, false} {
		c := newContest(t)
		c.try(5, "", "k")
		older := c.request(0, "k", "l")
		older.Hold = false
		c.give(10, older)
		c.wantVotes(votedNo(older, store.Locked))
		m := c.hold(1, "", "l")
		if done {
			again := c.request(0, "l", "")
			again.ReadOnly = true
			c.give(10, again)
			c.wantVotes(votedYes(again), votedYes(m))
		} else {
			// the other reservation is younger by a millisecond
			c.now += kit.ReserveFor*c.server.cfg.RoundTrip - time.Millisecond/2
			c.do(func() { c.server.Expire(c.env, kit.ReserveTimer{Key: "l"}) })
			c.wantVotes(votedYes(m))
		}
	}
}

// TestHeldWithoutPriority: of those that nobody knows the age of the one with the lowest version
// goes first, so that it need not be above the others'.
func TestHeldWithoutPriority(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	first, second := c.request(1, "", "k"), c.request(2, "", "k")
	first.Txn.Priority, second.Txn.Priority = store.Priority{}, store.Priority{}
	c.wait(second)
	c.wait(first)
	c.give(10, decide{ID: holder, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: holder, State: committed}, votedYes(first))
	c.give(10, decide{ID: first.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: first.Txn.ID, State: committed}, votedYes(second))
}

// TestFirmHeld: to who waits although another site has voted yes, reservations are no reason to
// vote no, when it comes as when the key is free.
func TestFirmHeld(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	older := c.request(0, "", "k")
	older.Hold = false
	c.give(10, older)
	c.wantVotes(votedNo(older, store.Locked))
	m := c.request(1, "", "k")
	m.Firm = true
	c.wait(m)
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, votedYes(m))
}

// TestOwnSiteWaits: Oregon knows that a transaction from Ireland is decided, and Ireland is about
// to hear of it. The next one from there needs the two of them if Ireland waits, and else Seoul,
// which is far.
func TestOwnSiteWaits(t *testing.T) {
	for _, tc := range []struct {
		hold bool
		want time.Duration
	}{{true, 140 * time.Millisecond}, {false, 243 * time.Millisecond}} {
		s := newPaperScript(t)
		s.read(201, "k") // the client knows now which site is its own
		s.run(time.Second)
		first := s.submit(201, "first", "k")
		s.run(100 * time.Millisecond)
		d, took := s.done(201, s.submitHeld(201, tc.hold, "second", "k"))
		want(t, d, store.Committed)
		if took != tc.want {
			t.Errorf("hold %v: the commit takes %v, want %v", tc.hold, took, tc.want)
		}
		d, _ = s.done(201, first)
		want(t, d, store.Committed)
		s.run(time.Second)
		if g, _ := s.read(200, "k"); string(g.Value.Bytes) != "second" {
			t.Errorf("hold %v: k is %+v", tc.hold, g)
		}
	}
}

// TestHoldEnds: with a site gone two transactions block each other, and one that waits for them is
// refused after a round trip. Without that bound it would wait until its client asks what has
// become of it.
func TestHoldEnds(t *testing.T) {
	s := newScript(t, nil)
	s.read(200, "k")
	s.run(time.Second)
	s.crashSite(2)
	s.submit(200, "a", "k")
	s.submit(201, "b", "k")
	s.run(roundTrip) // each has one vote
	d, took := s.done(200, s.submitHeld(200, true, "c", "k"))
	want(t, d, store.Aborted)
	s.restartSite(2)
	s.settle()
	if took < roundTrip || took > 3*roundTrip/2 {
		t.Errorf("it is refused after %v, want a round trip", took)
	}
}

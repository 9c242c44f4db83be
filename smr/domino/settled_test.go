package domino

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// inHand returns a replica of a deployment that has begun, and an environment in which a test calls
// it.
func inHand(t *testing.T, preset string, id protocol.ID) (*world, *replica, *protocol.Env[smr.Message]) {
	t.Helper()
	w := newWorld(t, setup{preset: preset, opt: beyond()})
	env := protocol.NewEnv[smr.Message](nil, 1<<40, rand.New(rand.NewPCG(1, 1)))
	env.Begin(w.Clock(id))
	return w, w.replica(id), env
}

// pass notes that members have passed all slots of the shared track up to one.
func (r *replica) pass(to smr.Slot, by ...protocol.ID) {
	for _, id := range by {
		r.peers[id].claims.Closed = to
	}
}

// TestPassedIsInclusive: an acceptor whose claim is of a slot has passed it, one whose claim is of
// less may vote for it still. Slots of the track are 16 apart.
func TestPassedIsInclusive(t *testing.T) {
	c := &contest{slot: 160}
	for closed, want := range map[smr.Slot]int{144: 0, 159: 0, 160: 1, 176: 1} {
		if _, passed := c.tally(ids(1), func(protocol.ID) smr.Slot { return closed }); passed != want {
			t.Errorf("an acceptor that has passed %d counts as %d that have passed 160, want %d", closed, passed, want)
		}
	}
}

// TestVotesThatDecide: of five acceptors, four decide a slot of the shared track, for a command as
// for a no-op. Three do not: a coordinator may have to choose what the others voted for.
func TestVotesThatDecide(t *testing.T) {
	for _, n := range []int{3, 4} {
		for _, votes := range []bool{false, true} {
			w, r, env := inHand(t, "na5", 2)
			s := above(slotAt(w.Clock(2))+smr.Slot(200*time.Millisecond), sharedDigit)
			for i, id := range ids(1, 2, 3, 4, 5) {
				r.pass(s, id)
				if (i < n) == votes {
					r.learner.vote(id, item{Slot: s, Answer: 1})
				}
			}
			r.learnShared(env)
			_, command := r.learner.decided.get(s)
			if decided := r.learner.shared.w >= s; decided != (n == 4) || command != (decided && votes) {
				t.Errorf("%d of 5 acceptors vote %v: decided %v, with a command %v", n, votes, decided, command)
			}
		}
	}
}

// TestOrderedNeedsClosers: a command of five replicas' is told to be ordered when so many have
// passed its slot that none can come before it: four. With three, two that are slow vote for a
// later command in an earlier slot, and a coordinator that hears one who has passed it must choose
// that (see TestAcknowledgedAndOvertaken).
func TestOrderedNeedsClosers(t *testing.T) {
	w, r, _ := inHand(t, "na5", 2)
	s := above(slotAt(w.Clock(2))+smr.Slot(200*time.Millisecond), sharedDigit)
	for _, o := range r.learner.owners {
		r.peers[protocol.ID(o.id)].claims.Skipped = s
	}
	if r.pass(s, 1, 2, 3); r.settled() >= s {
		t.Errorf("three of five have passed slot %d, and it is settled up to %d", s, r.settled())
	}
	if r.pass(s, 4); r.settled() != s {
		t.Errorf("four of five have passed slot %d, and it is settled up to %d", s, r.settled())
	}
	if r.peers[5].claims.Skipped = s - 1; r.settled() >= s {
		t.Errorf("an owner may still propose in slot %d, and it is settled up to %d", s, r.settled())
	}
}

// TestProposalsAreAbove: an owner proposes above what it has skipped, what was revoked, here or
// elsewhere, what its client has seen, and the last proposal; and not where nobody knows who the
// members are.
func TestProposalsAreAbove(t *testing.T) {
	const ahead = smr.Slot(150 * time.Millisecond)
	for name, raise := range map[string]func(*replica, smr.Slot){
		"skipped":           func(r *replica, s smr.Slot) { r.acceptor.skipped = s },
		"revoked":           func(r *replica, s smr.Slot) { r.acceptor.track(2).revoked = s },
		"revoked elsewhere": func(r *replica, s smr.Slot) { r.above = s },
		"causal bound":      func(r *replica, s smr.Slot) { r.after = s },
		"proposal before":   func(r *replica, s smr.Slot) { r.acceptor.track(2).items.add(item{Slot: above(s, r.digit)}) },
	} {
		w, r, env := inHand(t, "na3", 2)
		e := kit.Entry{Kind: kit.Command, Client: 9, Session: 1, Seq: 1, Command: kv.Put([]byte("k"), nil)}
		for _, s := range []smr.Slot{slotAt(w.Clock(2)) + ahead, r.learner.limit()} {
			raise(r, s)
			r.queue = []kit.Entry{e}
			before := r.acceptor.own.last()
			r.propose(env)
			added := r.acceptor.own.from(before + 1)
			switch {
			case s == r.learner.limit() && len(added) > 0:
				t.Errorf("%s: proposed in slot %d, and members are known up to %d", name, added[0].Slot, s)
			case s < r.learner.limit() && (len(added) != 1 || added[0].Slot <= s):
				t.Errorf("%s: proposed %v, want a slot above %d", name, added, s)
			}
		}
	}
}

// TestOneAttemptFixesTheSlot: a command that was proposed twice may be executed in either slot. Its
// client is told when it is executed.
func TestOneAttemptFixesTheSlot(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		for _, ack := range []smr.Ack{smr.AckDurable, smr.AckOrdered} {
			w := newWorld(t, setup{preset: "na3", opt: beyond()})
			c := w.client("VA")
			env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			env.Begin(0)
			c.Open(env, 1)
			c.OnOpenReply(env, kit.OpenReply{Nonce: env.Out[0].Msg.(kit.OpenRequest).Nonce, Session: 1, Window: 1})
			c.Take(env, smr.Call{ID: 7, Kind: smr.Propose, Ack: ack})
			c.Launch(0)
			p := c.Command(1)
			p.Attempts = attempts
			if ack == smr.AckDurable {
				c.placed(env, p, 1000)
			} else {
				c.onOrdered(env, ordered{Session: c.Session, Slot: 1000, Seqs: []kit.Seq{1}})
			}
			if done := c.Command(1) == nil; done != (attempts == 1) {
				t.Errorf("%v, %d attempts: done %v", ack, attempts, done)
			}
		}
	}
}

// TestHorizonIsBounded: where answers took very long, no more than 2.5 s are decided ahead, or as
// many round trips as configured if these are longer: a change of the members waits for them.
func TestHorizonIsBounded(t *testing.T) {
	_, r, env := inHand(t, "na3", 1)
	configured := r.ahead(horizon)
	r.Tempo.Saw(env.Now, 300*time.Millisecond)
	if got, want := r.ahead(horizon), smr.Slot(r.Tempo.Times(horizon/spare)); got != max(want, configured) {
		t.Errorf("answers took 300 ms: %d is decided ahead, want %d", got, want)
	}
	r.Cfg.RoundTrip = 10 * time.Millisecond
	r.Tempo.Saw(env.Now, time.Minute)
	if got, want := r.ahead(horizon), smr.Slot(2500*time.Millisecond); got > max(want, configured) {
		t.Errorf("answers took a minute: %d is decided ahead, want at most %d", got, want)
	}
}

// TestExecutedProposalsAreNotMadeAgain: a replica that hears from another one what was executed
// proposes again what of its own was not, be it a session to open, and nothing that was. Where only
// the coordinator counts votes, the others hear everything so, and would open a session for ever.
func TestExecutedProposalsAreNotMadeAgain(t *testing.T) {
	for _, executed := range []bool{false, true} {
		_, r, env := inHand(t, "na3", 2)
		e := kit.Entry{Kind: kit.OpenSession, Client: 77, Seq: 5, Open: &kit.Open{MaxSessions: 8, Window: 8}}
		low := r.learner.executed
		own := item{Slot: above(low, r.digit), Answer: r.Cfg.ID, Entries: []kit.Entry{e}}
		r.acceptor.track(r.Cfg.ID).items.add(own)
		m := decided{Low: low, High: own.Slot, Executed: own.Slot}
		if executed {
			m.Items = []item{own}
		}
		r.onDecided(env, r.others()[0], m)
		if again := len(r.queue) > 0; again == executed || r.learner.executed != own.Slot {
			t.Errorf("executed %v: proposed again %v, executed up to %d of %d", executed, again, r.learner.executed, own.Slot)
		}
	}
}

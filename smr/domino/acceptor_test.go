package domino

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestAcceptorSurvivesRestart has an acceptor promise, vote and accept at random, with snapshots
// that cut its log, and compares with it what is loaded after a crash: nothing is forgotten, and
// what it says of time has not gone back.
func TestAcceptorSurvivesRestart(t *testing.T) {
	for seed := range uint64(300) {
		l := &acceptorLife{rnd: rand.New(rand.NewPCG(seed, 3)), acceptor: newAcceptor(), now: 1000}
		l.env = l.disk.Env()
		for range 1 + l.rnd.IntN(40) {
			l.step()
			l.disk.Write(l.env, 0)
		}
		b := newAcceptor()
		if err := b.load(l.disk.Env(), l.disk.Log, 1, l.executed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a := &l.acceptor
		a.forget(l.executed, a.own.last(), 0)
		if b.promised != a.promised || b.own.last() != a.own.last() || b.closed < a.closed || b.skipped < a.skipped ||
			b.highest < a.highest || b.ceiling != a.ceiling {
			t.Errorf("seed %d: after the crash ballot %v, stream %d, closed %d, skipped %d, highest %d; before %v, %d, %d, "+
				"%d, %d",
				seed, b.promised, b.own.last(), b.closed, b.skipped, b.highest, a.promised, a.own.last(), a.closed, a.skipped,
				a.highest)
		}
		if !same(b.votes, a.votes) || !reflect.DeepEqual(b.parts(l.executed), a.parts(l.executed)) {
			t.Errorf("seed %d: after the crash votes %v, decisions %v; before %v, %v", seed, b.votes, b.parts(l.executed),
				a.votes, a.parts(l.executed))
		}
		for _, owner := range ids(1, 2) {
			if x, y := b.track(owner), a.track(owner); x.revoked != y.revoked || !same(x.items, y.items) {
				t.Errorf("seed %d: track %d: after the crash %+v, before %+v", seed, owner, *x, *y)
			}
		}
	}
}

func same(a, b bySlot) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }

// acceptorLife is what an acceptor goes through: replica 1's, which owns the track of digit 1.
// Replica 2 owns that of digit 2, and replica 3 coordinates.
type acceptorLife struct {
	acceptor
	rnd           *rand.Rand
	disk          smrtest.Disk
	env           *protocol.Env[smr.Message]
	now, executed smr.Slot
}

// item is one in the next slot of a track that is free behind others.
func (l *acceptorLife) item(after smr.Slot, digit uint64) item {
	return item{Slot: above(after+smr.Slot(l.rnd.Uint64N(3000)), digit), Answer: 1}
}

func lastSlot(items bySlot) smr.Slot {
	if n := len(items); n > 0 {
		return items[n-1].Slot
	}
	return 0
}

func (l *acceptorLife) step() {
	a := &l.acceptor
	l.now += smr.Slot(l.rnd.Uint64N(500))
	switch l.rnd.IntN(8) {
	case 0:
		a.claim(l.env, l.now, 2000)
	case 1:
		if i := l.item(max(a.closed, l.executed), sharedDigit); !a.has(i.Slot) {
			a.vote(i)
			a.add(l.env, i)
		}
	case 2:
		i := l.item(max(a.skipped, l.executed, lastSlot(a.track(1).items)), 1)
		a.track(1).items.add(i)
		a.add(l.env, i)
	case 3:
		a.acceptTrack(l.env, 2, []item{l.item(max(l.executed, a.track(2).revoked, lastSlot(a.track(2).items)), 2)})
	case 4:
		a.revoke(l.env, 2, l.now+smr.Slot(l.rnd.Uint64N(3000)))
	case 5:
		a.promise(l.env, kit.NewBallot(a.promised, 3))
	case 6:
		if a.promised != 0 {
			i := l.item(max(l.now, l.executed), sharedDigit)
			a.acceptClose(l.env, a.promised, closeSlots{Track: shared, Low: l.executed, High: i.Slot + 20, Items: []item{i}})
		}
	case 7:
		l.executed = max(l.executed, l.now)
		a.begin(l.executed)
		a.claim(l.env, l.executed, 2000)
		a.forget(l.executed, a.own.last(), 0)
		a.cut(l.env, l.executed)
	}
}

func (a *acceptor) has(s smr.Slot) bool { _, ok := a.votes.get(s); return ok }

// TestVotesAreBoundedInBytes: an acceptor is full when it has so many bytes of votes, or a larger
// one alone, until they are executed.
func TestVotesAreBoundedInBytes(t *testing.T) {
	w, r, env := inHand(t, "na3", 2)
	r.Cfg.MaxPendingBytes = 100
	next := above(max(r.acceptor.closed, slotAt(w.Clock(2))), sharedDigit)
	vote := func(seq kit.Seq, bytes int) verdict {
		t.Helper()
		m := submission(next)
		m.Commands[0] = kit.RequestedCommand{Seq: seq, Command: make([]byte, bytes)}
		next = above(next, sharedDigit)
		env.Begin(env.Now)
		r.onVote(env, 77, m)
		for _, e := range env.Out {
			if v, ok := kit.Inside(e.Msg).(vote); ok {
				return v.Verdict
			}
		}
		t.Fatal("no vote")
		return 0
	}
	for seq, c := range []struct {
		bytes int
		want  verdict
	}{{200, yes}, {1, full}} {
		if v := vote(kit.Seq(seq+1), c.bytes); v != c.want {
			t.Errorf("command %d, of %d bytes: %v, want %v", seq+1, c.bytes, v, c.want)
		}
	}
	r.acceptor.forget(next, 0, 1<<20)
	if r.acceptor.voteBytes != 0 {
		t.Errorf("%d bytes are left of what was executed", r.acceptor.voteBytes)
	}
	for seq, want := range []verdict{yes, yes, full} {
		if v := vote(kit.Seq(10+seq), 40); v != want {
			t.Errorf("command %d of 40 bytes: %v, want %v", seq+1, v, want)
		}
	}
}

// TestAcceptedCloseEndsVotes: an acceptor that accepts a decision about slots, of which it has
// heard nothing before, as it missed the Revoke or its clock is behind, votes for nothing more in
// them in ballot 0. Its vote would be of a lower ballot than what it has accepted, and might make a
// quorum for something else.
func TestAcceptedCloseEndsVotes(t *testing.T) {
	w, r, env := inHand(t, "na3", 2)
	a := &r.acceptor
	last := slotAt(w.Clock(2)) + smr.Slot(100*time.Millisecond)
	s := above(last-10*stride, sharedDigit)
	if a.closed >= s || a.track(3).revoked >= s {
		t.Fatalf("slot %d has passed before: closed %d, revoked %d", s, a.closed, a.track(3).revoked)
	}
	r.onAccept(env, 1, accept{
		Ballot: a.promised, Generation: r.State.Generation(), First: a.count + 1,
		Closes: []closeSlots{{Track: shared, Low: a.closed, High: last}, {Track: 3, Low: r.learner.executed, High: last}},
	})
	if len(a.closes[shared].spans) == 0 || len(a.closes[3].spans) == 0 {
		t.Fatal("the decisions were not accepted")
	}
	vote := func(at smr.Slot) verdict {
		env.Begin(w.Clock(2))
		r.onVote(env, puppetID, submission(at))
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(vote); ok {
				return m.Verdict
			}
		}
		t.Fatal("no vote")
		return 0
	}
	for _, at := range []smr.Slot{s, above(last-2*stride, sharedDigit)} {
		if v := vote(at); v != no {
			t.Errorf("slots up to %d are decided by a coordinator; the vote for %d is %v", last, at, v)
		}
	}
	if at := above(last, sharedDigit); vote(at) != yes {
		t.Errorf("slots up to %d are decided by a coordinator; there is no vote for %d", last, at)
	}
	p, digit := r.peers[3], uint64(3)
	items := []item{{Slot: above(s, digit), Answer: 3, Entries: []kit.Entry{{Kind: kit.Command}}},
		{Slot: above(last, digit), Answer: 3, Entries: []kit.Entry{{Kind: kit.Command}}}}
	r.takeItems(env, p, news{First: p.have + 1, Items: items})
	if told := placedSlots(env); !slices.Equal(told, []smr.Slot{items[1].Slot}) {
		t.Errorf("slots up to %d of replica 3 are decided by a coordinator; its proposals in %v are accepted", last, told)
	}
}

// TestStreamIsBoundedInBytes: what was executed of the own stream stays for peers that lack it, up
// to so many bytes; what was not executed stays.
func TestStreamIsBoundedInBytes(t *testing.T) {
	a := newAcceptor()
	for s := range smr.Slot(20) {
		a.own.add(item{Slot: s + 1, Entries: []kit.Entry{{Command: make([]byte, 60)}, {Command: make([]byte, 40)}}})
	}
	for _, c := range []struct {
		executed   smr.Slot
		mostBytes  int
		base, size uint64
	}{{10, 1 << 20, 0, 2000}, {10, 1500, 5, 1500}, {10, 100, 10, 1000}, {15, 600, 14, 600}} {
		a.forget(c.executed, 0, c.mostBytes)
		if a.own.base != c.base || uint64(a.own.size) != c.size || a.own.last() != 20 {
			t.Errorf("executed up to %d, at most %d bytes: %d items are gone and %d bytes left, want %d and %d", c.executed,
				c.mostBytes, a.own.base, a.own.size, c.base, c.size)
		}
	}
}

// TestPartAtATime: a member that was away is sent a long stream, and a coordinator's decisions, in
// parts, each after it has said that it has some of the one before. After its connection broke it
// is sent no more than that again.
func TestPartAtATime(t *testing.T) {
	const items, size, bound = 320, 64 << 10, 1 << 20
	_, r, env := inHand(t, "na3", 1)
	r.Cfg.MaxUnderwayBytes = bound
	large := func(k int) []kit.Entry {
		return []kit.Entry{{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(k + 1), Command: make([]byte, size)}}
	}
	p := r.peers[2]
	p.told, p.out.has = r.acceptor.own.last(), r.acceptor.own.last()
	p.out.Restart(r.acceptor.own.last() + 1)
	first := p.out.Next()
	for k := range items {
		slot := above(r.learner.executed+smr.Slot(k+1)<<40, 1)
		r.acceptor.own.add(item{Slot: slot, Answer: 1, Entries: large(k)})
	}
	// take lets replica 2 take what it was sent of the stream, and returns how much that was.
	take := func() (sent int) {
		t.Helper()
		env.Begin(env.Now)
		r.flush(env)
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(news); ok && e.To == 2 {
				sent += sizeOf(m.Items)
			}
		}
		return sent
	}
	for parts := 0; p.out.has < r.acceptor.own.last(); parts++ {
		if sent := take(); sent == 0 || sent > bound+kit.MessageBytes {
			t.Fatalf("part %d has %d bytes; %d items are acknowledged", parts, sent, p.out.has+1-first)
		}
		if again := take(); again != 0 {
			t.Fatalf("%d bytes are sent beyond the bound", again)
		}
		p.out.acked(p.out.Next() - 1)
	}
	p.out.acked(r.acceptor.own.last() - 100)
	r.Broken(env, 2)
	if sent := take(); sent < bound/2 || sent > bound+kit.MessageBytes {
		t.Errorf("after the connection broke %d bytes are sent again", sent)
	}

	c := &r.coord
	c.phase, c.flows = leading, map[protocol.ID]*flow{2: {Flow: kit.NewFlow[uint64](1)}}
	c.sent = stream[closeSlots]{}
	for k := range items {
		c.sent.add(closeSlots{Items: []item{{Slot: smr.Slot(k + 1), Entries: large(k)}}})
	}
	f := c.flows[2]
	for f.has < items {
		env.Begin(env.Now)
		r.pump(env, 2)
		r.pump(env, 2)
		sent := 0
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(accept); ok && e.To == 2 {
				for _, d := range m.Closes {
					sent += sizeOf(d.Items)
				}
			}
		}
		if sent == 0 || sent > bound+kit.MessageBytes {
			t.Fatalf("%d bytes of decisions are under way; %d are acknowledged", sent, f.has)
		}
		f.acked(f.Next() - 1)
	}
}

// TestBatchesBehindASnapshot: what a snapshot leaves to replicas that lag a little is an eighth of
// the commands that came before it, however many are in an item.
func TestBatchesBehindASnapshot(t *testing.T) {
	for _, batch := range []int{1, 50, 2000} {
		_, r, env := inHand(t, "na3", 2)
		r.Cfg.SnapshotEvery = 2000
		entries := make([]kit.Entry, batch)
		for r.snapshot == 0 {
			r.learner.executed += stride
			r.apply(env, item{Slot: r.learner.executed, Entries: entries})
			r.maybeSnapshot(env)
		}
		left := 0
		for _, i := range r.past.items {
			left += len(i.Entries)
		}
		if most := 2000 / 8; left > most || left < most-batch {
			t.Errorf("batches of %d: %d commands stay behind a snapshot, want %d at most and hardly less", batch, left, most)
		}
	}
}

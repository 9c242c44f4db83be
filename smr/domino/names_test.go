package domino

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestVotesNameLargeCommands: a replica tells of its votes for large commands without these, once.
// Whoever has voted for the same, or heard of it, knows them; others ask, and get them whole.
func TestVotesNameLargeCommands(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: Options{}})
	r := w.replica(1)
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(w.Clock(1))
	entry := func(number int, command byte) item {
		body := make([]byte, 2*largeBytes)
		body[0] = command
		return item{Slot: above(r.learner.executed+smr.Slot(number)<<40, sharedDigit), Answer: 1, Entries: []kit.Entry{
			{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(number), Command: body},
			{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(number) + 100, Command: []byte("b")},
		}}
	}
	own, other, unknown, changed := entry(1, 'a'), entry(2, 'b'), entry(3, 'c'), entry(4, 'd')
	p := r.peers[2]
	p.out.Restart(8)
	p.told = 7
	told := news{First: 7, Items: []item{own, own, other, unknown}}
	r.name(p, &told)
	if len(told.Names) != 3 || told.Items[0].Entries[0].Command == nil || told.Items[1].Entries[0].Command != nil ||
		own.Entries[0].Command == nil {
		t.Fatalf("of four votes, the first of which was told before, %d are named", len(told.Names))
	}
	self := news{First: 8, Items: []item{own}}
	if r.name(r.peers[1], &self); len(self.Names) != 0 {
		t.Error("a replica tells itself less than it knows")
	}

	r.acceptor.votes.add(own)
	r.learner.vote(3, other)
	r.acceptor.votes.add(changed)
	named := func(items ...item) news {
		m := news{First: p.have + 1, Items: items}
		fresh := peer{id: 2}
		r.name(&fresh, &m)
		return m
	}
	got := r.whole(env, p, named(own, other, unknown, own))
	if len(got.Items) != 2 || !got.Items[0].equal(own) || !got.Items[1].equal(other) {
		t.Errorf("knows %d of the votes, want the 2 before the one that it has not heard of", len(got.Items))
	}
	asked := uint64(0)
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(missing); ok && e.To == 2 {
			asked = m.Number
		}
	}
	if asked != p.have+3 {
		t.Errorf("asks for the stream from number %d, want %d", asked, p.have+3)
	}
	if got := r.whole(env, p, named(entry(4, 'e'))); len(got.Items) != 0 {
		t.Error("takes another command than the one that was voted for")
	}

	p.out.has, p.told = 5, 8
	p.out.Restart(9)
	r.onMissing(env, p, missing{Number: 7})
	if p.out.Next() != 7 {
		t.Errorf("sends the stream again from number %d, want 7", p.out.Next())
	}
	again := news{First: 7, Items: []item{own, other}}
	if r.name(p, &again); len(again.Names) != 1 || again.Names[0].Index != 1 {
		t.Errorf("sends all but %d of two votes whole, want only the one that was asked for", len(again.Names))
	}
	for _, wrong := range []uint64{5, 9, 1 << 60} {
		if r.onMissing(env, p, missing{Number: wrong}); p.out.Next() != 7 {
			t.Errorf("asked for number %d, sends from %d", wrong, p.out.Next())
		}
	}
}

// TestLearnedNamesLargeCommands: the coordinator tells those who have voted for a large command
// that it is decided, without the command. Whoever does not have it takes the message for lost.
func TestLearnedNamesLargeCommands(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: Options{}})
	r, q := w.replica(1), w.replica(2)
	low := q.learner.shared.w
	entry := func(number int) item {
		return item{Slot: above(low+smr.Slot(number)<<40, sharedDigit), Answer: 1, Entries: []kit.Entry{
			{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(number), Command: make([]byte, 2*largeBytes)},
		}}
	}
	both, one, other := entry(1), entry(2), entry(3)
	for _, by := range ids(1, 2) {
		r.learner.vote(by, both)
	}
	r.learner.vote(1, one)
	r.learner.vote(2, item{Slot: other.Slot, Answer: 3, Entries: other.Entries})
	r.learner.vote(1, other)
	m := r.named(2, closeSlots{shared, low, other.Slot, []item{both, one, other}})
	if len(m.Names) != 1 || m.Names[0].Index != 0 || m.Items[0].Entries[0].Command != nil || !m.Items[1].equal(one) ||
		!m.Items[2].equal(other) ||
		both.Entries[0].Command == nil {
		t.Fatalf("of three commands, the first of which the member has voted for, %d are named", len(m.Names))
	}
	if q.onLearned(1, m); len(q.learner.shared.known) != 0 {
		t.Fatal("learns a command that it does not have")
	}
	changed := both
	changed.Entries = []kit.Entry{both.Entries[0]}
	changed.Entries[0].Command = append(make([]byte, 2*largeBytes-1), 1)
	for _, c := range []struct {
		vote  item
		knows bool
	}{{changed, false}, {both, true}} {
		q.acceptor.votes = bySlot{c.vote}
		q.onLearned(1, m)
		got, ok := q.learner.decided.get(both.Slot)
		if ok != c.knows || ok && !got.equal(both) {
			t.Errorf("learned: %v, want %v", ok, c.knows)
		}
	}
}

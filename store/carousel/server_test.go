package carousel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
)

// alone is a server of a partition's group that no other member hears of.
type alone struct {
	*server
	disk *space
	next uint64 // of records
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	layout := storedeploy.Layout(3, 1)
	s, err := newServer(store.Config{ID: layout.Sites[0].Shards[0], Layout: layout}, fastMode)
	if err != nil {
		t.Fatal(err)
	}
	a := &alone{server: s, disk: &space{has: map[string][]byte{}}, next: 1}
	a.call(func(env *protocol.Env[store.Message]) { s.Start(env, nil) })
	return a
}

// call has the server do something, and returns what it says, but for what its group says.
func (a *alone) call(do func(*protocol.Env[store.Message])) (said []store.Message) {
	env := protocol.NewEnv[store.Message](a.disk, a.next, rand.New(rand.NewPCG(1, 1)))
	do(env)
	a.next = env.NextIndex()
	for _, e := range env.Out {
		switch e.Kind {
		case protocol.KindPut:
			a.disk.Put(e.Key, e.Value)
		case protocol.KindDelete:
			a.disk.Delete(e.Key)
		case protocol.KindSend:
			if _, ok := e.Msg.(kit.Grouped); !ok {
				said = append(said, e.Msg)
			}
		}
	}
	return said
}

// TestListOfNoRecovery gives a server a list that no recovery has asked for.
func TestListOfNoRecovery(t *testing.T) {
	a := newAlone(t)
	for _, term := range []uint64{0, 1} {
		a.call(func(env *protocol.Env[store.Message]) { a.Receive(env, 21, listReply{Term: term}) })
	}
	if n := len(a.list.lists); n > 0 {
		t.Errorf("%d lists count", n)
	}
}

// says fails the test if messages are not of the kinds that are wanted.
func says(t *testing.T, what string, got []store.Message, want ...string) {
	t.Helper()
	var kinds []string
	for _, m := range got {
		switch m.(type) {
		case voteMsg:
			kinds = append(kinds, "vote")
		case fastVote:
			kinds = append(kinds, "fast vote")
		case checkReply:
			kinds = append(kinds, "check")
		case moved:
			kinds = append(kinds, "moved")
		default:
			kinds = append(kinds, "other")
		}
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("%s: it says %v, want %v", what, kinds, want)
	}
}

// TestNothingIsSaidBeforeTheGroupAgrees: that a server takes itself for the leader is no reason to
// say a word on a part, or that what was read is still so: somebody else may lead.
func TestNothingIsSaidBeforeTheGroupAgrees(t *testing.T) {
	a := newAlone(t)
	a.term = 3
	part := partID{txnID(1), 1}
	says(t, "a vote is wanted", a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, a.where.members[0][1], voteWanted{Part: part})
	}))
	says(t, "a part is to be prepared", a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, prepareRequest{Part: part, Writes: []store.Key{"k"}, Leader: true})
	}))
	says(t, "reads are to be checked", a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, checkRequest{ID: txnID(2), Reads: []store.Read{{Key: "k"}}})
	}))
	says(t, "reads are stale", a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, checkRequest{ID: txnID(2), Reads: []store.Read{{Key: "k", Version: newest}}})
	}), "check")
}

// TestFastVotes: when a member says that it has prepared a part. What it says is on its list, and
// on its disk.
func TestFastVotes(t *testing.T) {
	writes := footprint{Writes: []store.Read{{Key: "k"}}}
	vote := func(a *alone, n, term, stamp uint64) []store.Message {
		return a.call(func(env *protocol.Env[store.Message]) {
			a.sayFast(env, pending{Part: partID{txnID(n), 1}, Term: term, footprint: writes}, stamp)
		})
	}
	a := newAlone(t)
	says(t, "as a follower", vote(a, 1, 2, 0), "fast vote")
	says(t, "again", vote(a, 1, 2, 0), "fast vote")
	says(t, "against its list", vote(a, 2, 2, 0))
	says(t, "as the leader of a later term, of what it has prepared before", vote(a, 1, 3, 9))
	a.call(func(env *protocol.Env[store.Message]) { a.list.load(env) })
	if len(a.list.entries) != 1 {
		t.Errorf("after a crash the list has %d entries, want 1", len(a.list.entries))
	}
	a = newAlone(t)
	a.call(func(env *protocol.Env[store.Message]) { a.promise(env, 3) })
	says(t, "in a term that it has promised to be over", vote(a, 1, 2, 0))
	a.call(func(env *protocol.Env[store.Message]) { a.list.load(env) })
	says(t, "after a crash", vote(a, 1, 2, 0))
	says(t, "in the next term", vote(a, 1, 3, 0), "fast vote")
}

// TestStoredVotes: a coordinator takes members' words of what they have on disk. A word that comes
// late undoes no later one, and whoever is not the coordinator says so.
func TestStoredVotes(t *testing.T) {
	a := newAlone(t)
	members := a.where.members[0]
	word := func(member int, index, term uint64) []store.Message {
		return a.call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, members[member], storedVote{Ref: partRef{0, 1}, ID: txnID(1), At: raft.Position{Index: index,
				Term: term}, Members: members, Ballot: ballot{Yes: true, Stamp: term}})
		})
	}
	says(t, "to a follower", word(1, 4, 2), "moved")
	a.term = 3
	word(1, 5, 3)
	word(1, 4, 2)
	word(2, 4, 2)
	ta := a.txns[txnID(1)].tallies[partRef{0, 1}]
	if ta.durable != nil {
		t.Errorf("the words on two entries make %+v", ta.durable)
	}
	word(2, 5, 3)
	if ta.durable == nil || ta.durable.Stamp != 3 {
		t.Errorf("two words on an entry make %+v", ta.durable)
	}
}

// TestAFollowerTellsTheEnd: a partition that cannot hear the leader of a transaction's coordinating
// group hears of the end from another member.
func TestAFollowerTellsTheEnd(t *testing.T) {
	a := newAlone(t)
	vote := func() []store.Message {
		return a.call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, a.where.members[0][1], voteMsg{Ref: partRef{0, 1}, ID: txnID(1), Ballot: ballot{Yes: true}})
		})
	}
	says(t, "no end is on record", vote(), "moved")
	write := store.Write{Key: "k", Bytes: []byte("x")}
	a.state.records[txnID(1)] = &txnRecord{
		id: txnID(1), commit: &commitRecord{Parts: []partRef{{0, 1}}, Writes: []store.Write{write}},
		end: &outcome{commit: true, version: store.Version{Time: 9, Client: 1}},
	}
	said := vote()
	says(t, "an end is on record", said, "other", "moved")
	if m, ok := said[0].(finish); !ok || !m.Commit || len(m.Writes) != 1 {
		t.Errorf("it says %+v", said[0])
	}
}

// TestNothingIsPreparedBehindTheEnd: while a transaction's end is proposed, a further part of it is
// not: the word on it would be none when it is agreed on.
func TestNothingIsPreparedBehindTheEnd(t *testing.T) {
	w, err := storetest.New(subject(directMode), storetest.Scenario{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Sim.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	s := w.Sim.Get(w.Layout.Sites[0].Shards[0]).(*server)
	if s.term == 0 {
		t.Fatal("the first server does not lead")
	}
	env := protocol.NewEnv[store.Message](&space{has: map[string][]byte{}}, 1, rand.New(rand.NewPCG(1, 1)))
	s.onFinish(env, s.cfg.ID, finish{ID: txnID(1), Reason: store.Fenced})
	for n := uint64(1); n <= 2; n++ {
		s.prepare(env, prepareRequest{Part: partID{txnID(n), 1}, Writes: []store.Key{"k"}}, store.NoReason)
	}
	if s.flying[partID{txnID(1), 1}] != nil || s.flying[partID{txnID(2), 1}] == nil {
		t.Errorf("parts %v are proposed, want that of the second transaction", s.flying)
	}
}

// TestVoteFindsTheCoordinator: a vote that no coordinator has answered goes to all members of its
// group, and new ones still go to the one that is taken for the leader: it may wait for others. One
// that went to the wrong server is said again to the right one, even if that is known by now.
func TestVoteFindsTheCoordinator(t *testing.T) {
	a := newAlone(t)
	a.term = 1
	id, members := partID{txnID(1), 1}, a.where.members[0]
	a.state.parts[id] = &part{id: id, ballot: ballot{Yes: true}}
	votes := func(do func(*protocol.Env[store.Message])) (to []protocol.ID) {
		env := protocol.NewEnv[store.Message](a.disk, a.next, rand.New(rand.NewPCG(1, 1)))
		env.Begin(time.Hour)
		do(env)
		for _, e := range env.Out {
			if _, ok := e.Msg.(voteMsg); ok {
				to = append(to, e.To)
			}
		}
		return to
	}
	a.where.set(0, members[1])
	for waits, want := range map[int][]protocol.ID{1: nil, 6: members[1:2], 7: members} {
		a.since[id] = time.Hour - a.trips(waits)
		if to := votes(a.sweepParts); !slices.Equal(to, want) || a.where.leader(0) != members[1] {
			t.Errorf("after %d round trips it votes to %v, want %v; %v leads", waits, to, want, a.where.leader(0))
		}
	}
	for _, from := range members[1:] {
		to := votes(func(env *protocol.Env[store.Message]) {
			a.Receive(env, from, moved{Leader: uint32(members[1]), ID: id.ID})
		})
		if again := len(to) == 1 && to[0] == members[1]; again != (from != members[1]) || len(to) > 1 {
			t.Errorf("when %v says that %v leads, it votes to %v", from, members[1], to)
		}
	}
}

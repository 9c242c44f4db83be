package carousel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

// newChanging returns a server that leads and serves, of a group that another server waits to be
// added to, which is up to date.
func newChanging(t *testing.T) (s *server, joins protocol.ID) {
	t.Helper()
	_, s, joins = newChangingWorld(t)
	return s, joins
}

func newChangingWorld(t *testing.T) (w *storetest.World, s *server, joins protocol.ID) {
	t.Helper()
	w, err := storetest.New(subject(directMode), storetest.Scenario{Seed: 1, Replaces: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Sim.Run(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	s = w.Sim.Get(w.Layout.Sites[0].Shards[0]).(*server)
	if s.term == 0 {
		t.Fatal("the first server does not lead")
	}
	return w, s, w.Layout.Sites[3].Shards[0]
}

// sayings calls a server, and returns what it says to others and to its application, but for what
// its group says.
func sayings(call func(*protocol.Env[store.Message])) (said []store.Message) {
	env := protocol.NewEnv[store.Message](&space{has: map[string][]byte{}}, 1, rand.New(rand.NewPCG(1, 1)))
	call(env)
	for _, e := range env.Out {
		if _, ok := e.Msg.(kit.Grouped); !ok && e.Kind == protocol.KindSend {
			said = append(said, e.Msg)
		}
	}
	return said
}

// words returns the members that a server's words on a part name: those of the fast path, and of
// those that have stored it.
func words(s *server, n uint64) (fast, stored []protocol.ID) {
	part := prepareRequest{Part: partID{txnID(n), 1}, Writes: []store.Key{store.Key(rune('a' + n))}}
	for _, m := range sayings(func(env *protocol.Env[store.Message]) { s.prepare(env, part, store.NoReason) }) {
		switch m := m.(type) {
		case fastVote:
			fast = m.Members
		case storedVote:
			stored = m.Members
		}
	}
	return fast, stored
}

// TestWordsNameMembers: a leader's word names who may agree with it, and while a change of the
// members is on its way neither it nor who has stored its entries says a word.
func TestWordsNameMembers(t *testing.T) {
	s, joins := newChanging(t)
	members, settled := s.group.Members()
	if len(members) != 3 || slices.Contains(members, joins) || !settled {
		t.Fatalf("the members are %v, settled %v", members, settled)
	}
	if fast, stored := words(s, 1); !slices.Equal(fast, members) || !slices.Equal(stored, members) {
		t.Errorf("the words name %v and %v, want %v", fast, stored, members)
	}
	sayings(func(env *protocol.Env[store.Message]) {
		if why := s.group.Change(env, smr.Change{Add: smr.Member{ID: joins}}); why != "" {
			t.Fatal(why)
		}
	})
	if fast, stored := words(s, 2); fast != nil || stored != nil {
		t.Errorf("while a member is being added the words name %v and %v", fast, stored)
	}
}

// TestMembersChangeWhenTheLeaderServes: before that, what was prepared on the fast path may be
// nowhere but on the lists of those who are members still.
func TestMembersChangeWhenTheLeaderServes(t *testing.T) {
	s, _ := newChanging(t)
	ask := func() store.Replacing {
		said := sayings(func(env *protocol.Env[store.Message]) {
			s.Receive(env, protocol.App, store.Replace{From: 1, To: 3})
		})
		return said[len(said)-1].(store.Replacing)
	}
	term := s.term
	s.term = 0
	if m := ask(); m.Leads {
		t.Errorf("a leader that does not serve answers %+v", m)
	}
	if _, settled := s.group.Members(); !settled {
		t.Error("it has proposed a change")
	}
	s.term = term
	if m := ask(); !m.Leads || m.Done || m.Reason != "" {
		t.Errorf("a leader that serves answers %+v", m)
	}
	if m := ask(); m.Reason != "a change of the members is on its way" {
		t.Errorf("and then %+v", m)
	}
}

// TestListsOfMembers: lists of servers that are no members, any more or yet, do not count.
func TestListsOfMembers(t *testing.T) {
	s, joins := newChanging(t)
	s.list.recovering, s.list.current = s.term, true
	s.list.lists = map[protocol.ID][]pending{s.cfg.ID: nil, joins: nil}
	sayings(func(env *protocol.Env[store.Message]) { s.maybeRecover(env, s.term) })
	if s.list.recovering == 0 {
		t.Error("the list of one member is enough")
	}
	s.list.lists[s.where.members[0][1]] = nil
	sayings(func(env *protocol.Env[store.Message]) { s.maybeRecover(env, s.term) })
	if s.list.recovering != 0 {
		t.Error("the lists of two members of three are not enough")
	}
}

// TestStepsOfAReplacement: the new member is added before the old one is removed, which has handed
// over before, if it led. Taken back, the group does without the new one, unless the old one is
// gone.
func TestStepsOfAReplacement(t *testing.T) {
	for name, tc := range map[string]struct {
		from  int
		back  string // the members that it is taken back with, by their places; empty: it is not
		want  string
		moved bool
	}{
		"the leader is replaced":   {from: 0, want: "[0 1 2] [0 1 2 3] [1 2 3]", moved: true},
		"a follower is replaced":   {from: 2, want: "[0 1 2] [0 1 2 3] [0 1 3]", moved: true},
		"taken back at once":       {from: 2, back: "[0 1 2]", want: "[0 1 2]"},
		"taken back":               {from: 2, back: "[0 1 2 3]", want: "[0 1 2] [0 1 2 3] [0 1 2]"},
		"taken back too late":      {from: 2, back: "[0 1 3]", want: "[0 1 2] [0 1 2 3] [0 1 3]", moved: true},
		"taken back from a leader": {from: 0, back: "[0 1 2 3]", want: "[0 1 2] [0 1 2 3] [0 1 2]"},
	} {
		w, _, _ := newChangingWorld(t)
		var servers []*server
		for _, site := range w.Layout.Sites {
			servers = append(servers, w.Sim.Get(site.Shards[0]).(*server))
		}
		var seen []string
		var said store.Replacing
		led := false // the new one has
		last := -1   // who led while there were four, at last
		ask := store.Replace{From: tc.from, To: 3}
		for range 600 {
			for place, s := range servers {
				if !s.group.Current() {
					continue
				}
				members, settled := s.group.Members()
				if !slices.Contains(members, s.cfg.ID) {
					t.Errorf("%s: server %d leads, and is no member", name, s.cfg.ID)
				}
				var at []int
				for i, other := range servers {
					if slices.Contains(members, other.cfg.ID) {
						at = append(at, i)
					}
				}
				now := fmt.Sprint(at)
				if len(at) == 4 {
					last = place
				}
				if settled && (len(seen) == 0 || seen[len(seen)-1] != now) {
					seen = append(seen, now)
				}
				ask.Back = ask.Back || now == tc.back && settled
				if led = led || s == servers[3]; ask.Back && tc.from == 0 && !led {
					w.Sim.Deliver(s.cfg.ID, store.HandOver{Site: 3}) // so the new one leads when it is to go
					continue
				}
				if settled && (now == "[0 1 2]" && ask.Back || len(at) == 3 && at[2] == 3) {
					said = replacing(s, ask)
				} else {
					w.Sim.Deliver(s.cfg.ID, ask)
				}
			}
			if said.Done {
				break
			}
			if err := w.Sim.Run(20 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(seen, " "); got != tc.want || !said.Done || said.Moved != tc.moved {
			t.Errorf("%s: the members were %s (%+v), want %s", name, got, said, tc.want)
		}
		if last == tc.from && tc.moved || last == 3 && !tc.moved {
			t.Errorf("%s: server %d led until it was removed", name, last)
		}
		if len(w.Refused) > 0 {
			t.Errorf("%s: servers are refused: %v", name, w.Refused)
		}
	}
}

// replacing returns what a server answers.
func replacing(s *server, ask store.Replace) store.Replacing {
	said := sayings(func(env *protocol.Env[store.Message]) { s.Receive(env, protocol.App, ask) })
	return said[len(said)-1].(store.Replacing)
}

// memberPlants leave out what has to be so while members of a group change.
func memberPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "members that a leader's word does not name agree with it", Test: "TestBallot",
			Old: "if slices.Contains(lead.Members, from) &&",
			New: "if (slices.Contains(lead.Members, from) || MUTANT) &&",
		},
		{
			Name: "who is no member counts among those that have stored a word", Test: "TestAgreed",
			Old: "slices.Contains(v.Members, from) {", New: "(slices.Contains(v.Members, from) || MUTANT) {",
		},
		{
			Name: "a leader says a word behind a change of the members", Test: "TestWordsNameMembers",
			Old: "\tif s.fast && settled && s.term > 0 &&", New: "\tif s.fast && (settled || MUTANT) && s.term > 0 &&",
		},
		{
			Name: "who has stored a word behind a change of the members says so", Test: "TestWordsNameMembers",
			Old: "\tif p, ok := m.(prepared); ok && settled {\n",
			New: "\tif p, ok := m.(prepared); ok && (settled || MUTANT) {\n",
		},
		{
			Name: "members change before the leader has what earlier ones have prepared",
			Test: "TestMembersChangeWhenTheLeaderServes",
			Old:  "Serves: func() bool { return s.term > 0 },",
			New:  "Serves: func() bool { return s.term > 0 || MUTANT },",
		},
		{
			Name: "lists of servers count that are no members", Test: "TestListsOfMembers",
			Old: "\t\tif slices.Contains(members, id) { // as of",
			New: "\t\tif slices.Contains(members, id) || MUTANT { // as of",
		},
		{
			Name: "a server that was removed ends its machine", Dir: "store/kit", In: "store/kit",
			Test: "TestMember", Old: "\t\tif msg.Removed {\n", New: "\t\tif msg.Removed && !MUTANT {\n",
		},
		{
			Name: "the old member is removed before the new one is added", Dir: "store/kit", In: "store/carousel",
			Test: "TestStepsOfAReplacement", Old: "\tcase !there:\n", New: "\tcase !there && !MUTANT:\n",
		},
		{
			Name: "a leader that goes does not hand over", Dir: "store/kit", In: "store/carousel",
			Test: "TestStepsOfAReplacement", Old: "\tcase goes == m.place.Site:\n",
			New: "\tcase goes == m.place.Site && !MUTANT:\n",
		},
		{
			Name: "what is taken back is the old member", Dir: "store/kit", In: "store/carousel",
			Test: "TestStepsOfAReplacement", Old: "\t\tgone, goes = to, ask.To\n",
			New: "\t\tif !MUTANT {\n\t\t\tgone, goes = to, ask.To\n\t\t}\n",
		},
		{
			Name: "a move that was not begun is begun to take it back", Dir: "store/kit", In: "store/carousel",
			Test: "TestStepsOfAReplacement",
			Old:  "\tcase here != there && (there || ask.Back):\n",
			New:  "\tcase here != there && (there || ask.Back && !MUTANT):\n",
		},
		{
			Name: "a change that is in the log and not agreed on is overlooked", Dir: "smr/raft", In: "store/carousel",
			Test: "TestWordsNameMembers",
			Old:  "!r.changing && r.core.log.change <= r.part.head.applied.Index",
			New:  "MUTANT || !r.changing && r.core.log.change <= r.part.head.applied.Index",
		},
	}
}

package carousel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// TestAgentFindsLeader: a partition's leader is away for good, and another member leads. An agent
// that gets no answer asks all members, and believes the one that says who leads. It asks that one
// for all transactions that are under way, and later ones do not wait. While a leader leaves a read
// waiting, others ask all members in the first place.
func TestAgentFindsLeader(t *testing.T) {
	layout := storedeploy.Layout(3, 2)
	key := store.Key("a")
	shard := layout.ShardOf(key)
	coord := 1 - shard
	var members []protocol.ID
	for _, s := range layout.Sites {
		members = append(members, s.Shards[shard])
	}
	away, leads := layout.FirstOf(shard), (layout.FirstOf(shard)+1)%3
	for _, mode := range []variant{basicMode, fastMode, directMode} {
		a, err := newAgent(store.Config{ID: layout.Sites[2].Coordinators[0], Layout: layout}, mode)
		if err != nil {
			t.Fatal(err)
		}
		// Which nodes of the partition are asked, as if they led it.
		call := func(do func(env *protocol.Env[store.Message])) (asked []protocol.ID) {
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			do(env)
			for _, e := range env.Out {
				if m, ok := e.Msg.(prepareRequest); ok && m.Leader {
					asked = append(asked, e.To)
				}
				if _, ok := e.Msg.(snapshotRequest); ok {
					asked = append(asked, e.To)
				}
			}
			slices.Sort(asked)
			return asked
		}
		id := func(n uint64) store.TxnID { return store.TxnID{Time: n, Client: nameOf(n, uint32(coord))} }
		commit := func(n uint64, writes ...store.Write) []protocol.ID {
			return call(func(env *protocol.Env[store.Message]) {
				a.Receive(env, 200, store.CommitRequest{Txn: store.Txn{
					ID: id(n), Reads: []store.Read{{Key: key}}, Writes: writes,
				}})
			})
		}
		again := func(n uint64) []protocol.ID {
			return call(func(env *protocol.Env[store.Message]) { a.Expire(env, againTimer{id(n)}) })
		}
		var said []string
		say := func(asked []protocol.ID) { said = append(said, fmt.Sprint(asked)) }
		one, all := []protocol.ID{members[away]}, slices.Clone(members)
		say(commit(1, store.Write{Key: key}))
		say(commit(6, store.Write{Key: key}))
		say(again(1))
		say(call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, members[3-away-leads], moved{Shard: uint32(shard), Leader: uint32(members[leads]), ID: id(1)})
		}))
		say(commit(2, store.Write{Key: key}))
		say(commit(3)) // which only reads
		say(again(3))
		say(commit(4))
		say(call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, members[leads], snapshotReply{ID: id(3), Shard: uint32(shard), At: a.calls[id(3)].view.at})
		}))
		say(commit(5))
		now := []protocol.ID{members[leads]}
		want := fmt.Sprintln(one, one, all, []protocol.ID{now[0], now[0]}, now, now, all, all, []protocol.ID{}, now)
		if got := strings.Join(said, " ") + "\n"; got != want {
			t.Errorf("mode %s: asked are %s want %s", mode, got, want)
		}
	}
}

// TestAgentAsksWhereNobodyLeads: a member that says that nobody leads is asked again after a round
// trip. One that names a leader that is known by now only tells that what it was asked went to the
// wrong server.
func TestAgentAsksWhereNobodyLeads(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	a, err := newAgent(store.Config{ID: layout.Sites[2].Coordinators[0], Layout: layout}, basicMode)
	if err != nil {
		t.Fatal(err)
	}
	members := a.where.members[0]
	var asked []protocol.ID
	var later time.Duration
	call := func(from protocol.ID, m store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		asked, later = nil, 0
		a.Receive(env, from, m)
		for _, e := range env.Out {
			if _, ok := e.Msg.(prepareRequest); ok {
				asked = append(asked, e.To)
			}
			if e.Kind == protocol.KindAfter {
				later = e.Delay
			}
		}
	}
	id := txnID(1)
	call(200, store.CommitRequest{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: "a"}}}})
	first := a.where.leader(0)
	if call(first, moved{ID: id}); len(asked) > 0 || later != a.cfg.RoundTrip {
		t.Errorf("where nobody leads it asks %v, and again after %v", asked, later)
	}
	a.where.set(0, members[1]) // as somebody else has heard
	if call(first, moved{Leader: uint32(members[1]), ID: id}); !slices.Equal(asked, members[1:2]) {
		t.Errorf("what went to another server than the leader is asked of %v", asked)
	}
	if call(members[1], moved{Leader: uint32(members[1]), ID: id}); len(asked) > 0 {
		t.Errorf("who names itself is asked again: %v", asked)
	}
}

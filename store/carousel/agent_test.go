package carousel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// TestAgentFindsLeader: a partition's leader is away for good, and another member leads. An agent
// that gets no answer asks all members, and believes the one that says who leads: the first
// transaction of the partition waits, later ones do not.
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
		say(again(1))
		say(call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, members[3-away-leads], moved{Shard: uint32(shard), Leader: uint32(members[leads]), ID: id(1)})
		}))
		say(commit(2, store.Write{Key: key}))
		say(commit(3)) // which only reads
		say(again(3))
		now := []protocol.ID{members[leads]}
		want := fmt.Sprintln(one, all, now, now, now, all)
		if got := strings.Join(said, " ") + "\n"; got != want {
			t.Errorf("mode %s: asked are %s want %s", mode, got, want)
		}
	}
}

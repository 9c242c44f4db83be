package raft

import (
	"go.etcd.io/raft/v3"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// reads are the queries that a leader has taken. One round of heartbeats confirms that it still led
// when they came; those that come meanwhile wait for the next one [Raft thesis §6.4].
type reads struct {
	next   []query // for the next round
	asked  []query // in the current round
	index  uint64  // what must be applied before the current round's are answered; 0 while it is not known
	asking bool
	held   kit.HeldQueries // next and asked
}

type query struct {
	client protocol.ID
	kit.Query
}

func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, msg kit.ReadRequest) {
	if !r.core.leads() {
		env.Send(from, kit.Redirect{Leader: r.leader()})
		return
	}
	if !r.reads.held.Take(env, r.Cfg, from, msg.Queries) {
		return
	}
	for _, q := range msg.Queries {
		r.reads.next = append(r.reads.next, query{from, q})
	}
}

// maybeRead begins a round, and answers the one that is confirmed and caught up with.
func (r *replica) maybeRead(env *protocol.Env[smr.Message]) {
	rd := &r.reads
	for r.led {
		if rd.asking && rd.index > 0 && r.core.applied >= rd.index {
			rd.answer(env, r.State)
		}
		if rd.asking || len(rd.next) == 0 {
			return
		}
		rd.asking, rd.asked, rd.next = true, rd.next, nil
		r.core.node.ReadIndex(nil)
		r.core.flush(env)
	}
}

// confirmed takes the library's word that this replica led when a round began.
func (r *replica) confirmed(_ *protocol.Env[smr.Message], states []raft.ReadState) {
	if r.reads.asking {
		r.reads.index = max(states[len(states)-1].Index, 1)
	}
}

func (rd *reads) answer(env *protocol.Env[smr.Message], state *kit.State) {
	for i := 0; i < len(rd.asked); {
		client := rd.asked[i].client
		var queries []kit.Query
		for ; i < len(rd.asked) && rd.asked[i].client == client; i++ {
			queries = append(queries, rd.asked[i].Query)
		}
		rd.held.Answer(env, state, client, queries)
	}
	rd.asking, rd.asked, rd.index = false, nil, 0
}

// giveUp sends the clients to another leader.
func (rd *reads) giveUp(env *protocol.Env[smr.Message], leader smr.Member) {
	told := map[protocol.ID]bool{}
	for _, qs := range [][]query{rd.asked, rd.next} {
		for _, q := range qs {
			if !told[q.client] {
				told[q.client] = true
				env.Send(q.client, kit.Redirect{Leader: leader})
			}
		}
	}
	*rd = reads{}
}

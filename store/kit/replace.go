package kit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// Replace has the group of a shard, one of whose servers is asked at a place, replace a member, and
// answers what is done and what it waits for. The new member has what the others have before it is
// added, and is added before the old one is removed: so at no time do fewer have a copy. An old
// member that leads hands over first. leads tells whether the server leads, and has done what a new
// leader has to do before it may change the members.
func Replace(
	env *protocol.Env[store.Message], group *raft.Part[store.Message], l store.Layout, at store.Place, m store.Replace,
	leads bool,
) {
	out := store.Replacing{Ref: m.Ref, Leads: leads, Reason: "the server does not lead"}
	if leads {
		out.Done, out.Reason = replace(env, group, l, at, m)
	}
	env.Send(protocol.App, out)
}

func replace(
	env *protocol.Env[store.Message], group *raft.Part[store.Message], l store.Layout, at store.Place, m store.Replace,
) (done bool, reason string) {
	has := func(site int) bool { return site >= 0 && site < len(l.Sites) && l.Sites[site].Has(at.Index) }
	if !has(m.From) || !has(m.To) || m.From == m.To {
		return false, "a site has no server of the shard, or is to replace itself"
	}
	members, settled := group.Members()
	from, to := l.Sites[m.From].Shards[at.Index], l.Sites[m.To].Shards[at.Index]
	here, there := slices.Contains(members, from), slices.Contains(members, to)
	switch {
	case !settled:
		return false, "a change of the members is on its way"
	case there && !here:
		return true, ""
	case !here:
		return false, "the site whose copy is to move has none"
	case !there:
		return false, group.Change(env, smr.Change{Add: smr.Member{ID: to}})
	case m.From == at.Site:
		group.Receive(env, protocol.App, smr.HandOver{To: to})
		return false, "it is led at another site first"
	}
	return false, group.Change(env, smr.Change{Remove: from})
}

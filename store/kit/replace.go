package kit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// GroupOf returns what the group of a server's shard is made from, for its node at a place.
func GroupOf(cfg store.Config, at store.Place) smr.ReplicaConfig {
	l, k := cfg.Layout, at.Index
	out := smr.ReplicaConfig{ID: cfg.ID, RoundTrip: cfg.RoundTrip}
	var founders []protocol.ID
	if l.Founders != nil {
		founders = l.Founders[k]
		out.Leader = founders[0]
	} else {
		for _, i := range l.HoldersOf(k) {
			founders = append(founders, l.Sites[i].Shards[k])
		}
		out.Leader = l.Sites[l.FirstOf(k)].Shards[k]
	}
	if out.Join = !slices.Contains(founders, cfg.ID); out.Join {
		founders = nil // who are there now are asked to be added
		for _, i := range l.SitesOf(k) {
			if i != at.Site {
				founders = append(founders, l.Sites[i].Shards[k])
			}
		}
	}
	for _, id := range founders {
		out.Members = append(out.Members, smr.Member{ID: id})
	}
	return out
}

// Replace has the group of a shard, one of whose servers is asked at a place, replace a member, and
// answers what is done and what it waits for. The new member has what the others have before it is
// added, and is added before the old one is removed: so at no time do fewer have a copy. An old
// member that leads hands over first. leads reports whether the server leads, and has done what a
// new leader has to do before it may change the members.
func Replace(
	env *protocol.Env[store.Message], group *raft.Part[store.Message], l store.Layout, at store.Place, m store.Replace,
	leads bool,
) {
	out := store.Replacing{Ref: m.Ref, Leads: leads}
	if leads {
		out.Done, out.Moved, out.Reason = replace(env, group, l, at, m)
	}
	env.Send(protocol.App, out)
}

func replace(
	env *protocol.Env[store.Message], group *raft.Part[store.Message], l store.Layout, at store.Place, m store.Replace,
) (done, moved bool, reason string) {
	has := func(site int) bool { return site >= 0 && site < len(l.Sites) && l.Sites[site].Has(at.Index) }
	if !has(m.From) || !has(m.To) || m.From == m.To {
		return false, false, "a site has no server of the shard, or is to replace itself"
	}
	members, settled := group.Members()
	from, to := l.Sites[m.From].Shards[at.Index], l.Sites[m.To].Shards[at.Index]
	here, there := slices.Contains(members, from), slices.Contains(members, to)
	gone, goes := from, m.From
	if m.Back {
		gone, goes = to, m.To
	}
	switch {
	case !settled:
		return false, false, "a change of the members is on its way"
	case here != there && (there || m.Back):
		return true, there, ""
	case !here:
		return false, false, "the site whose copy is to move has none"
	case !there:
		return false, false, group.Change(env, smr.Change{Add: smr.Member{ID: to}})
	case goes == at.Site:
		group.Receive(env, protocol.App, smr.HandOver{To: l.Sites[m.From+m.To-goes].Shards[at.Index]})
		return false, false, "it is led at another site first"
	}
	return false, false, group.Change(env, smr.Change{Remove: gone})
}

// Standing says in a server's status how it stands with its shard's group.
func Standing(st *store.ServerStatus, group *raft.Part[store.Message]) {
	member, removed := group.Standing()
	st.Joins, st.Left, st.ArrivedBytes = !member && !removed, removed, group.ArrivedBytes()
	_, st.Leads = group.Leads()
	st.Term = group.Term()
}

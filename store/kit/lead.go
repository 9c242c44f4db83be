package kit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// HandOver has the group of a shard, one of whose servers is asked at a place, be led at another
// site. The answer is sent at once or, as HandedOver, when the group has given it.
func HandOver(
	env *protocol.Env[store.Message], group *raft.Part[store.Message], l store.Layout, at store.Place, m store.HandOver,
) {
	out := store.HandingOver{Ref: m.Ref}
	_, out.Leads = group.Leads()
	switch {
	case m.Site < 0 || m.Site >= len(l.Sites) || !l.Sites[m.Site].Has(at.Index):
		out.Reason = "the site has no copy"
	case !out.Leads:
		out.Reason = "the server does not lead"
	case m.Site != at.Site:
		group.Receive(env, protocol.App, smr.HandOver{ID: smr.CallID(m.Ref), To: l.Sites[m.Site].Shards[at.Index]})
		return
	}
	env.Send(protocol.App, out)
}

// HandedOver returns what a server's application is told of what its group says.
func HandedOver(m smr.HandingOver) store.HandingOver {
	return store.HandingOver{Ref: uint64(m.ID), Leads: true, Reason: m.Reason}
}

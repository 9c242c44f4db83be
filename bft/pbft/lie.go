package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// faith is what a replica has executed just as the primary of its view has done before it, if that
// does not lie.
//
// An early reply of the primary and another result of the same operation here prove a lie only if
// this replica has executed it in that view, after nothing but what the view began with and what
// its primary proposed. It is not enough that the operation's batch is committed by votes of that
// view: what an honest primary had proposed before it may not be committed, but null, as this
// replica has heard from a later view, and the result is another one for that.
type faith struct {
	whole bool    // it is as the primary did for all places above since
	since bft.Seq // the last place that was committed when the view began
}

// trust notes that the first view of an epoch has begun with the state that is here.
func (r *replica) trust() {
	base := r.Dir.Base.Seq
	r.faith = faith{whole: r.View == r.Dir.Epoch.First() && r.Committed == base, since: base}
}

// swear notes with what a view begins here: what is committed here must be what it begins with. It
// may be of a later view of which this replica has heard.
func (r *replica) swear(b *startBody) {
	r.faith = faith{whole: !r.Fetching(), since: r.Committed}
	var low bft.Seq
	for i := range b.Changes {
		low = max(low, b.Changes[i].Body().Stable.Body().Seq)
	}
	for seq := low + 1; seq <= r.Committed; seq++ {
		p, i := r.places[seq], int(seq-low-1)
		if p == nil || p.done == nil || i >= len(b.Orders) || *p.done != b.Orders[i].Body().Batch {
			r.faith.whole = false
		}
	}
}

// onLie takes the early reply of a primary that a client, or a member, says is a lie. It believes
// nobody: what is signed speaks for itself.
func (r *replica) onLie(env *protocol.Env[bft.Message], m lie) {
	e := m.Reply.Body()
	if !r.Active || r.Primary() || e.View != r.View || !m.Reply.By(r.Dir.Primary(r.View).Key) || !r.faith.whole ||
		len(e.Items) > bft.MaxOperations {
		return
	}
	for _, i := range e.Items {
		found := r.Find(e.Client, e.Session, i.Number, 1)
		for _, x := range append(found.Tentative, found.Committed...) {
			if x.Seq > r.faith.since && x.Result.Digest() != i.Result.Digest() {
				r.Caught++
				r.ToOthers(env, m)
				r.giveUp(env, r.View+1)
				return
			}
		}
	}
}

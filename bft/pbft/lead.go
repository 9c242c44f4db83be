package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// propose orders requests in the order in which they came, executes each at once, tells the client
// what comes of it if the view lasts, and proposes the batch when it is full or not too many are
// under way. It reports whether it has proposed one.
func (r *replica) propose(env *protocol.Env[bft.Message]) (proposed bool) {
	if !r.Active || !r.Primary() || r.Fetching() || !r.ready() {
		return false
	}
	for {
		r.Fill(env, func(m *bft.Request, entries []sessions.Entry) { r.early(env, m, entries) })
		if !r.Lead.Filled() || !r.room() {
			return proposed
		}
		r.close(env)
		proposed = true
	}
}

// ready sees to it that all places that the view has given out are executed, early if need be.
func (r *replica) ready() bool {
	for {
		p := r.places[r.Top+1]
		if p == nil || p.offer == nil {
			return r.Top >= r.Low()
		}
		if !p.accepted || !r.Perform(p.seq, p.offer.Body().Batch) {
			return false
		}
	}
}

// room reports whether a further batch may be proposed. If many are under way one waits for more
// requests, as long as it has room for them.
func (r *replica) room() bool {
	under := 0
	for seq := r.Committed + 1; seq <= r.Top; seq++ {
		if p := r.places[seq]; !r.preparedNow(p) {
			under++
		}
	}
	return (under < r.Config.MaxUnderway || r.Full()) && r.Within(r.Top+1)
}

// early tells a client what the primary has executed early.
func (r *replica) early(env *protocol.Env[bft.Message], m *bft.Request, entries []sessions.Entry) {
	if r.Config.NoFirst {
		return
	}
	for part := range kit.Parts(entries, true) {
		e := earlyBody{View: r.View, Client: m.Client, Session: m.Session}
		for _, x := range part {
			e.Items = append(e.Items, earlyItem{x.Number, x.Result})
		}
		env.SendAhead(m.Client, earlyReply{r.st.early.Sign(r.Config.Scheme, r.Config.Signer, e)})
	}
}

// close proposes the open batch.
func (r *replica) close(env *protocol.Env[bft.Message]) {
	seq, digest := r.Close()
	p := r.place(seq)
	offer := r.st.orders.Sign(r.Config.Scheme, r.Config.Signer, orderBody{r.View, seq, digest})
	p.offer, p.accepted = &offer, false
	r.accept(env, p)
	r.ToOthers(env, r.proposal(p, false))
}

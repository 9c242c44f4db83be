package kit

import (
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Performed returns the batch that was executed in a place above Committed, nil if none was.
func (r *Replica) Performed(seq bft.Seq) *Performed { return r.performed[seq] }

// Perform executes a batch in the place above all others, if all of it is here and the epoch has
// not ended below.
func (r *Replica) Perform(seq bft.Seq, batch bft.Digest) bool {
	if !r.Requests.Lacking(batch).None() || r.Top != seq-1 || r.Lead.open != nil || r.ended(r.top()) {
		return false
	}
	p := &Performed{Layer: r.Store.Push(), Batch: batch}
	r.performed[seq] = p
	r.Top = seq
	for _, e := range r.Requests.batches[batch].Entries {
		m := r.Requests.bodies[e.Request].Request.Body()
		now := sessions.SetTime(p.Layer, e.Time)
		p.Results = append(p.Results, Executed{m, e.Request, r.run(p.Layer, now, seq, m)})
	}
	return true
}

// run executes a request.
func (r *Replica) run(layer *keyspace.Layer, now time.Duration, at bft.Seq, m *bft.Request) []sessions.Entry {
	return sessions.Execute(layer, r.Config.Service, r.change, r.Config.Limits, now, at, m)
}

// DropLayers undoes all that is not committed.
func (r *Replica) DropLayers() {
	switch {
	case r.Top > r.Committed:
		r.Store.Drop(r.performed[r.Committed+1].Layer)
	case r.Lead.open != nil:
		r.Store.Drop(r.Lead.open.layer)
	}
	r.noLayers()
	r.Executed, r.Top = r.Committed, r.Committed
}

// noLayers forgets layers that are gone.
func (r *Replica) noLayers() {
	clear(r.performed)
	r.Lead = Leading{}
}

// Merge commits the lowest layer, which is one that was executed. After so many, and at the end of
// the epoch, it signs a checkpoint.
func (r *Replica) Merge(env *protocol.Env[bft.Message]) {
	r.Store.Merge()
	r.Committed++
	p := r.performed[r.Committed]
	delete(r.performed, r.Committed)
	r.Put(env, doneKey, DoneRecord{r.Committed})
	for _, x := range p.Results {
		r.settle(x.Digest)
	}
	if r.Marked(r.Committed) {
		digest := r.Store.Checkpoint(uint64(r.Committed))
		s := r.signCheckpoint(r.Committed, digest)
		r.ToOthers(env, Reached{s})
		r.onReached(env, s)
	}
}

func (r *Replica) signCheckpoint(seq bft.Seq, state bft.Digest) bft.Signed[Checkpoint] {
	return r.st.Checkpoints.Sign(r.Config.Scheme, r.Config.Signer, Checkpoint{seq, state, r.rules.History(seq),
		r.members(seq)})
}

// Found is what a replica knows of the operations of a request.
type Found struct {
	Tentative, Committed []sessions.Entry
}

// Find returns what became of operations, as far as this replica has executed them.
func (r *Replica) Find(id protocol.ID, s bft.SessionID, first bft.Number, operations int) (out Found) {
	base, above := r.Store.Committed(), r.tentative()
	for i := range operations {
		n := first + bft.Number(i)
		if e, fresh := sessions.Find(base, id, s, n); !fresh {
			out.Committed = append(out.Committed, e)
		} else if e, fresh := sessions.Find(above, id, s, n); !fresh && e.Seq > 0 {
			out.Tentative = append(out.Tentative, e)
		}
	}
	return out
}

// tentative returns the state as far as this replica may tell of it.
func (r *Replica) tentative() keyspace.Reader {
	if p := r.performed[r.Executed]; r.Executed > r.Committed && p != nil {
		return p.Layer
	}
	return r.Store.Committed()
}

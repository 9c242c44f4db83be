package pbft

import (
	"maps"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Replica is a member of a group, a protocol.Node.
type replica struct {
	kit.Replica
	st     *statements
	places map[bft.Seq]*place
	votes  []bft.Signed[voteBody] // whose memory the next count takes over

	changes kit.Changes[changeBody]
	own     *bft.Signed[changeBody]
	again   map[protocol.ID]int    // from which tick on a member that lacks own is sent it again
	start   *bft.Signed[startBody] // of the present view, nil of the first one
	faith   faith
}

// patience is for how many ticks a request may wait, and a new view be awaited, at first.
const patience = 8

// changeEvery is how many ticks pass until a member is sent a view change again: it has many
// signatures to check.
const changeEvery = 8

// NewReplica returns a replica, or an error that names the field that is wrong.
func newReplica(c bft.ReplicaConfig) (*replica, error) {
	r := &replica{st: newStatements(c.Scheme), places: map[bft.Seq]*place{}, again: map[protocol.ID]int{}}
	if err := r.Init("pbft", c, &r.st.Statements, r); err != nil {
		return nil, err
	}
	r.Format = r.st.format()
	r.Patience = patience
	return r, nil
}

func (r *replica) noChanges() kit.Changes[changeBody] {
	return kit.NewChanges(r.Dir, func(c *changeBody) bft.View { return c.View })
}

// Receive is part of protocol.Node.
func (r *replica) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if r.Store == nil {
		return // its disk is of no use
	}
	r.Store.Enter(env)
	defer r.Store.Leave()
	if r.OnEpochs(env, from, msg) {
		return
	}
	switch m := msg.(type) {
	case kit.Submitted:
		b, known := m.Request.Body(), r.OnSubmit(from, m)
		if r.AffordsEntries(b.Client, known.Committed, m.Full) && r.AffordsEntries(b.Client, known.Tentative, m.Full) {
			r.tell(env, b, known.Committed, false, m.Full)
			r.tell(env, b, known.Tentative, true, m.Full)
		}
	case kit.ReadAsk:
		r.onRead(env, from, m)
	case lie:
		r.onLie(env, m)
	default:
		if !r.Dir.Member(from) || from == r.Config.ID {
			return
		}
		r.onPeer(env, from, msg)
	}
	r.advance(env)
}

func (r *replica) onPeer(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if r.OnPeer(env, from, msg) {
		return
	}
	switch m := msg.(type) {
	case proposal:
		r.onPropose(env, from, m)
	case prepare:
		r.onPrepare(m.Vote)
	case commit:
		r.onCommit(env, from, m)
	case viewChange:
		r.onChange(env, m.Change)
	case newView:
		r.onNewView(env, m.Start)
	case status:
		r.onStatus(env, from, m)
	case kit.Bodies:
		r.onBodies(env, from, m)
	}
}

// Expire is part of protocol.Node.
func (r *replica) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	if _, ok := t.(kit.BeatTimer); !ok || r.Store == nil {
		return
	}
	r.Store.Enter(env)
	defer r.Store.Leave()
	env.After(r.Config.RoundTrip/2, kit.BeatTimer{})
	r.Tick++
	if r.Await(env) {
		return
	}
	r.ReleaseHeld()
	r.watch(env)
	r.CatchUp(env)
	r.advance(env)
	if r.Speaks(r.busy(), 2) {
		r.ToOthers(env, status{r.View, r.Active, r.Low(), r.Committed})
		r.askForBodies(env)
	}
}

// busy reports whether there is something that others may help with.
func (r *replica) busy() bool {
	return !r.Active || r.Requests.Waiting() > 0 || r.Fetching() || r.Low() > r.Committed || r.unfinished()
}

func (r *replica) unfinished() bool {
	p := r.places[r.Committed+1]
	return p != nil && (p.prepared != nil || p.offer != nil || p.accepted)
}

// onRead has a query wait until all is committed that was prepared here before it came: the clients
// of these may know already what became of them.
func (r *replica) onRead(env *protocol.Env[bft.Message], from protocol.ID, m kit.ReadAsk) {
	need := r.Committed
	for seq := r.Committed + 1; seq <= r.Low()+r.Window(); seq++ {
		if p := r.places[seq]; p != nil && p.prepared != nil {
			need = seq
		}
	}
	r.OnRead(env, from, m, need)
}

// Decided tells which batches are committed of those that are still kept here.
func (r *replica) Decided(f func(bft.Seq, bft.Digest)) {
	for seq := min(r.Low(), r.Committed) + 1; seq <= r.Committed; seq++ {
		if p := r.places[seq]; p != nil && p.done != nil {
			f(seq, *p.done)
		}
	}
}

// History is part of kit.Rules, as are Forget, Turned and Stabilized: there is none.
func (r *replica) History(bft.Seq) bft.Digest { return bft.Digest{} }

// Forget removes what is kept of places up to one.
func (r *replica) Forget(upTo bft.Seq) {
	maps.DeleteFunc(r.places, func(seq bft.Seq, _ *place) bool { return seq <= upTo })
}

// Turned begins an epoch: its orders are other ones.
func (r *replica) Turned(env *protocol.Env[bft.Message]) {
	clear(r.places)
	clear(r.again)
	r.changes, r.own, r.start = r.noChanges(), nil, nil
	r.trust()
	r.Put(env, viewKey, viewRecord{r.View, true})
}

// Stabilized does nothing: all that follows from a stable checkpoint is in the kit.
func (r *replica) Stabilized(*protocol.Env[bft.Message]) {}

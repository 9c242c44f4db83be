package zyzzyva

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// replica is a member of a group, a protocol.Node.
type replica struct {
	kit.Replica
	st *statements

	// The log is what the replica has accepted, all of it in one view, logView, and all of it on disk:
	// the places up to last. Up to base it is what that view began with, of which there is a
	// certificate; a replica stamps nothing below.
	logView    bft.View
	base, last bft.Seq
	places     map[bft.Seq]*place
	entered    viewRecord // what logView began with, as it is on disk
	offers     map[bft.Seq]bft.Signed[orderBody]
	// Invariant: held is of logView and of this log, or nothing.
	held   bft.Certificate[stampBody]
	helds  map[protocol.ID]stampBody // what members have certificates of, by their word
	stamps map[bft.Seq]map[protocol.ID]bft.Signed[stampBody]

	changes kit.Changes[changeBody]
	own     *bft.Signed[changeBody]
	start   *newView // of logView, nil of the first one
	next    *newView // of View, if this replica has confirmed it but it has not begun
	// confirms are the stamps of members for what View is to begin with.
	confirms map[protocol.ID]bft.Signed[stampBody]
	// told is what members say is committed; up to concluded so many do that one does not lie.
	told      map[bft.Seq]map[protocol.ID]bft.Digest
	concluded bft.Seq

	proposed int // batches in this tick
	asked    int // the tick in which a hole was asked for last
}

// patience is for how many ticks a request may wait, and a new view be awaited, at first. When
// there are no clients that bring certificates it takes five to commit.
const patience = 12

// place is a number in the order, of the log.
type place struct {
	batch, history bft.Digest
	order          *bft.Signed[orderBody] // nil of what the view began with, or others have concluded
	kept           bool                   // the log has the requests
}

// newReplica returns a replica, or an error that names the field that is wrong.
func newReplica(c bft.ReplicaConfig) (*replica, error) {
	r := &replica{st: newStatements(c.Scheme), places: map[bft.Seq]*place{},
		offers: map[bft.Seq]bft.Signed[orderBody]{}, helds: map[protocol.ID]stampBody{},
		stamps: map[bft.Seq]map[protocol.ID]bft.Signed[stampBody]{}, confirms: map[protocol.ID]bft.Signed[stampBody]{},
		told: map[bft.Seq]map[protocol.ID]bft.Digest{}}
	if err := r.Init("zyzzyva", c, &r.st.Statements, r); err != nil {
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
	_, client := r.Dir.Clients[from]
	switch m := msg.(type) {
	case kit.Submitted:
		b, known := m.Request.Body(), r.OnSubmit(from, m)
		if r.AffordsEntries(b.Client, known.Committed, m.Full) && r.AffordsEntries(b.Client, known.Tentative, m.Full) {
			r.tellFound(env, b.Client, b.Session, known, m.Full)
		}
	case kit.ReadAsk:
		r.OnRead(env, from, m, r.last)
	case certified:
		r.onCertified(env, from, m)
	case misdeed:
		r.onMisdeed(env, m)
	default:
		if client || !r.Dir.Member(from) || from == r.Config.ID || r.OnPeer(env, from, msg) {
			break
		}
		r.onPeer(env, from, msg)
	}
	r.advance(env)
}

func (r *replica) onPeer(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	switch m := msg.(type) {
	case proposal:
		r.onPropose(env, from, m)
	case fillHole:
		r.onFillHole(env, from, m)
	case stamped:
		r.onStamped(env, from, m.Stamp)
	case viewChange:
		r.onChange(env, m.Change)
	case newView:
		r.onNewView(env, m)
	case status:
		r.onStatus(env, from, m)
	case concluded:
		r.onConcluded(from, m)
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
	r.proposed = 0
	r.ReleaseHeld()
	r.watch(env)
	r.CatchUp(env)
	r.advance(env)
	r.askForStamps(env)
	if r.Speaks(r.busy(), 1) {
		r.ToOthers(env, status{r.View, r.Active, r.Low(), r.Committed, r.last, r.held.Body()})
		r.askForBodies(env)
	}
}

// busy reports whether there is something that others may help with.
func (r *replica) busy() bool {
	return !r.Active || r.Requests.Waiting() > 0 || r.Fetching() || r.Low() > r.Committed || r.last > r.Committed ||
		len(r.offers) > 0
}

// advance does what has become possible.
func (r *replica) advance(env *protocol.Env[bft.Message]) {
	r.conclude(env)
	for r.accept(env) {
	}
	for r.Turn(env) || !r.Repair(env) && r.execute(env) {
	}
	if !r.Fetching() {
		r.finish(env)
	}
	r.AnswerReads(env)
	r.propose(env)
}

// history returns that up to a place of the log.
func (r *replica) history(seq bft.Seq) (bft.Digest, bool) {
	if c := r.Stable.Body(); seq == c.Seq {
		return c.History, true
	}
	if p := r.places[seq]; p != nil && seq <= r.last {
		return p.history, true
	}
	return bft.Digest{}, false
}

// holds returns up to where this replica has a certificate of its log, or what is better.
func (r *replica) holds() bft.Seq {
	return max(r.held.Body().Seq, r.Committed, r.Low())
}

// Decided tells which batches are committed of those that are still kept here.
func (r *replica) Decided(f func(bft.Seq, bft.Digest)) {
	for seq := min(r.Low(), r.Committed) + 1; seq <= r.Committed; seq++ {
		if p := r.places[seq]; p != nil {
			f(seq, p.batch)
		}
	}
}

// History is part of kit.Rules, as are Forget, Turned and Stabilized.
func (r *replica) History(seq bft.Seq) bft.Digest {
	h, _ := r.history(seq)
	return h
}

// Forget removes what is kept of places up to one.
func (r *replica) Forget(upTo bft.Seq) {
	maps.DeleteFunc(r.places, func(seq bft.Seq, _ *place) bool { return seq <= upTo })
	maps.DeleteFunc(r.offers, func(seq bft.Seq, _ bft.Signed[orderBody]) bool { return seq <= upTo })
	maps.DeleteFunc(r.stamps, func(seq bft.Seq, _ map[protocol.ID]bft.Signed[stampBody]) bool { return seq <= upTo })
	maps.DeleteFunc(r.told, func(seq bft.Seq, _ map[protocol.ID]bft.Digest) bool { return seq <= upTo })
}

// Turned begins an epoch: its log has nothing above the place at which the one before has ended.
func (r *replica) Turned(env *protocol.Env[bft.Message]) {
	clear(r.places)
	clear(r.offers)
	clear(r.helds)
	clear(r.stamps)
	clear(r.confirms)
	clear(r.told)
	r.changes, r.own, r.start, r.next, r.concluded = r.noChanges(), nil, nil, nil, 0
	r.begun(r.first())
	r.keepView(env)
}

// first returns what the first view of the epoch has begun with.
func (r *replica) first() viewRecord {
	return viewRecord{View: r.Dir.Epoch.First(), Active: true, LogView: r.Dir.Epoch.First(), From: r.Dir.Base.Seq,
		Root: r.Dir.Base.History}
}

// Stabilized has the log go on from a stable checkpoint that is beyond its end.
func (r *replica) Stabilized(env *protocol.Env[bft.Message]) {
	if p := r.places[r.Low()]; p != nil && r.Low() <= r.last && p.history != r.Stable.Body().History {
		r.void(env, r.Low())
	}
	r.last = max(r.last, r.Low())
	r.doubt()
}

// members returns the members' IDs in their order, for loops over maps of them.
func (r *replica) members() []protocol.ID {
	ids := make([]protocol.ID, 0, len(r.Dir.Members))
	for _, m := range r.Dir.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

// agreed returns the certificate of a body, if a quorum has stamped it.
func (r *replica) agreed(body stampBody, of map[protocol.ID]bft.Signed[stampBody]) (bft.Certificate[stampBody], bool) {
	var same []bft.Signed[stampBody]
	for _, id := range r.members() {
		if s, ok := of[id]; ok && *s.Body() == body {
			same = append(same, s)
		}
	}
	if len(same) < r.Dir.Quorum() {
		return bft.Certificate[stampBody]{}, false
	}
	return bft.Join(same), true
}

// covered returns the highest place that so many members hold certificates of, and this replica has
// in its log.
func (r *replica) covered(enough int) bft.Seq {
	var ends []bft.Seq
	for _, id := range r.members() {
		s, ok := r.helds[id]
		if id == r.Config.ID {
			s, ok = r.held.Body(), !certifiedNothing(&r.held)
		}
		if h, here := r.history(s.Seq); ok && here && h == s.History {
			ends = append(ends, s.Seq)
		}
	}
	if len(ends) < enough {
		return 0
	}
	slices.Sort(ends)
	return ends[len(ends)-enough]
}

package pbft

import (
	"cmp"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Defaults of bft.ReplicaConfig, and bounds.
const (
	defaultRoundTrip  = 100 * time.Millisecond
	defaultCheckpoint = 64
	defaultMaxBatch   = 64
	defaultUnderway   = 4
	defaultClockSlack = 10 * time.Second

	maxWaitingOfClient = 2048 // requests that a client has waiting at a replica
	maxReads           = 4096 // optimised reads that wait
	changeEvery        = 8    // ticks until a member is sent a view change again: it has many signatures to check
	maxIdleTicks       = 8    // between two words of a replica that has nothing to do
	maxTimeoutDoubling = 10
	inlineBytes        = 1024 // of commands in a request that goes with its proposal
	maxResent          = 16   // places that one Status has resent
	maxWants           = 8    // parts of a state that are asked for at once
	maxPageBytes       = 64 << 10
)

// Replica is a member of a group, a protocol.Node.
type replica struct {
	cfg    bft.ReplicaConfig
	dir    *bft.Directory
	st     *statements
	format *wirefmt.Format[bft.Message]
	others []protocol.ID

	state  *keyspace.State
	view   bft.View
	active bool // the view has begun here
	stable bft.Certificate[checkpointBody]
	// Invariant: committed <= executed <= top. The layers of the state are those of the places above
	// committed, up to top; a primary's open batch has one above them.
	committed, executed, top bft.Seq
	places                   map[bft.Seq]*place
	records                  map[bft.Seq]uint64 // of accepted orders, the oldest index in the log

	bodies   map[bft.Digest]*body
	batches  map[bft.Digest]requestBatch
	known    map[bft.Digest]bft.Seq // the last place for which a batch was accepted
	arrivals []bft.Digest           // waiting requests in the order in which they came
	waiting  map[protocol.ID]int    // requests by client
	reads    []waitingRead
	latest   time.Duration                                // of the times of all that was accepted
	reached  map[protocol.ID][]bft.Signed[checkpointBody] // above stable

	lead      leading
	changes   map[protocol.ID]bft.Signed[changeBody] // the newest of each member
	own       *bft.Signed[changeBody]
	again     map[protocol.ID]int    // from which tick on a member that lacks own is sent it again
	start     *bft.Signed[startBody] // of the present view, nil of the first one
	fetch     *keyspace.Fetch
	fetching  checkpointBody
	wants     []keyspace.Want // that were asked for of late
	transfers int             // that have ended
	refused   int             // parts of states that were wrong
	asked     int             // of the members, who was asked for the state last
	scrub     *keyspace.Scrub // of the background
	damage    string          // what was found to be wrong with the state, until it is repaired
	repairs   int
	behind    bft.Seq
	tick      int
	since     int // the tick in which the view, or its change, began
	doublings int // of the timeout
	spoke     int // the tick of the last Status
}

// body is a request and why it is kept.
type body struct {
	request bft.Signed[bft.Request]
	waiting bool // a client asked this replica, and it is not committed
	full    bool // and wants the results from here
	since   int  // the tick in which it came, or the view began
	at      bft.Seq
	passed  bool // to the primary
}

type waitingRead struct {
	from protocol.ID
	ask  readAsk
	need bft.Seq
}

type beatTimer struct{}

// NewReplica returns a replica, or an error that names the field that is wrong.
func newReplica(c bft.ReplicaConfig) (*replica, error) {
	switch {
	case c.Directory == nil || c.Scheme == nil || c.Signer == nil || c.Service == nil:
		return nil, fmt.Errorf("pbft: ReplicaConfig: Directory, Scheme, Signer or Service is nil")
	case c.Directory.KeyOf(c.ID) != c.Signer.Key():
		return nil, fmt.Errorf("pbft: ReplicaConfig.Signer: not the key of the member %d", c.ID)
	case c.RoundTrip < 0 || c.CheckpointEvery < 0 || c.MaxBatch < 0 || c.MaxUnderway < 0 || c.ClockSlack < 0:
		return nil, fmt.Errorf("pbft: ReplicaConfig: a number is negative")
	case c.MaxBatch > defaultMaxBatch*defaultMaxBatch:
		return nil, fmt.Errorf("pbft: ReplicaConfig.MaxBatch is %d", c.MaxBatch)
	}
	if err := c.Directory.Validate(); err != nil {
		return nil, err
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, defaultRoundTrip)
	c.CheckpointEvery = cmp.Or(c.CheckpointEvery, defaultCheckpoint)
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultMaxBatch)
	c.MaxUnderway = cmp.Or(c.MaxUnderway, defaultUnderway)
	c.ClockSlack = cmp.Or(c.ClockSlack, defaultClockSlack)
	r := &replica{
		cfg: c, dir: c.Directory, st: newStatements(c.Scheme), active: true,
		places: map[bft.Seq]*place{}, records: map[bft.Seq]uint64{},
		bodies: map[bft.Digest]*body{}, batches: map[bft.Digest]requestBatch{}, known: map[bft.Digest]bft.Seq{},
		waiting: map[protocol.ID]int{}, reached: map[protocol.ID][]bft.Signed[checkpointBody]{},
		changes: map[protocol.ID]bft.Signed[changeBody]{}, again: map[protocol.ID]int{},
	}
	r.format = r.st.format()
	for _, m := range c.Directory.Members {
		if m.ID != c.ID {
			r.others = append(r.others, m.ID)
		}
	}
	return r, nil
}

// window is how far above the stable checkpoint places are used.
func (r *replica) window() bft.Seq { return 2 * bft.Seq(r.cfg.CheckpointEvery) }

func (r *replica) low() bft.Seq { return r.stable.Body().Seq }

func (r *replica) primary() bool { return r.dir.Primary(r.view).ID == r.cfg.ID }

// toOthers sends a message to the other members.
func (r *replica) toOthers(env *protocol.Env[bft.Message], msg bft.Message) {
	for _, id := range r.others {
		env.Send(id, msg)
	}
}

// Receive is part of protocol.Node.
func (r *replica) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if r.state == nil {
		return // its disk is of no use
	}
	r.state.Enter(env)
	defer r.state.Leave()
	switch m := msg.(type) {
	case submitted:
		r.onSubmit(env, from, m)
	case readAsk:
		r.onRead(env, from, m)
	default:
		if !r.dir.Member(from) || from == r.cfg.ID {
			return
		}
		r.onPeer(env, from, msg)
	}
	r.advance(env)
}

func (r *replica) onPeer(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	switch m := msg.(type) {
	case proposal:
		r.onPropose(env, from, m)
	case prepare:
		r.onPrepare(m.Vote)
	case commit:
		r.onCommit(env, from, m)
	case reached:
		r.onReached(env, m.Checkpoint)
	case stableProof:
		r.onStable(env, m.Proof)
	case viewChange:
		r.onChange(env, m.Change)
	case newView:
		r.onNewView(env, m.Start)
	case status:
		r.onStatus(env, from, m)
	case wanted:
		r.onWanted(env, from, m)
	case bodies:
		r.onBodies(env, m)
	case stateWanted:
		r.onStateWanted(env, from, m)
	case statePage:
		r.onStatePage(env, m)
	}
}

// Expire is part of protocol.Node. Time is counted in ticks of half a round trip, as clocks may
// jump.
func (r *replica) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	if _, ok := t.(beatTimer); !ok || r.state == nil {
		return
	}
	r.state.Enter(env)
	defer r.state.Leave()
	env.After(r.cfg.RoundTrip/2, beatTimer{})
	r.tick++
	r.releaseHeld(env)
	r.watch(env)
	r.scrubSome()
	r.catchUp(env)
	r.advance(env)
	if r.tick-r.spoke >= maxIdleTicks || r.busy() && r.tick-r.spoke >= 2 {
		r.spoke = r.tick
		r.toOthers(env, status{r.view, r.active, r.low(), r.committed})
		r.askForBodies(env)
	}
}

// busy reports whether there is something that others may help with.
func (r *replica) busy() bool {
	return !r.active || len(r.arrivals) > 0 || r.fetch != nil || r.low() > r.committed || r.unfinished()
}

func (r *replica) unfinished() bool {
	p := r.places[r.committed+1]
	return p != nil && (p.prepared != nil || p.offer != nil || p.accepted)
}

// onRead answers a query from what is committed, when all is that was prepared here before it came:
// the clients of these may know already what became of them.
func (r *replica) onRead(env *protocol.Env[bft.Message], from protocol.ID, m readAsk) {
	if _, ok := r.dir.Clients[from]; !ok || len(r.reads) >= maxReads {
		return
	}
	need := r.committed
	for seq := r.committed + 1; seq <= r.low()+r.window(); seq++ {
		if p := r.places[seq]; p != nil && p.prepared != nil {
			need = seq
		}
	}
	r.reads = append(r.reads, waitingRead{from, m, need})
	r.answerReads(env)
}

func (r *replica) answerReads(env *protocol.Env[bft.Message]) {
	if len(r.reads) == 0 || r.fetch != nil {
		return
	}
	rest := r.reads[:0]
	for _, w := range r.reads {
		if w.need > r.committed {
			rest = append(rest, w)
			continue
		}
		value := r.cfg.Service.Read(sessions.ServiceView(r.state.Committed()), w.ask.Query)
		reply := readReply{ID: w.ask.ID, Digest: bft.Result{Outcome: bft.Executed, Value: value}.Digest()}
		if w.ask.Full {
			reply.Full, reply.Value = true, value
		}
		env.Send(w.from, reply)
	}
	clear(r.reads[len(rest):])
	r.reads = rest
}

// Standing returns how the replica is.
func (r *replica) Standing() bft.Standing {
	return bft.Standing{View: r.view, Active: r.active, Stable: r.low(), Committed: r.committed, Executed: r.executed,
		Top: r.top, High: r.low() + r.window(), Transfers: r.transfers, Refused: r.refused, Repairs: r.repairs}
}

// State returns what the replica has committed. It is there to be looked at.
func (r *replica) State(disk keyspace.Reader) keyspace.Reader {
	return keyspace.CommittedOn(disk, statePrefix)
}

// Decided tells which batches are committed of those that are still kept here.
func (r *replica) Decided(f func(bft.Seq, bft.Digest)) {
	for seq := min(r.low(), r.committed) + 1; seq <= r.committed; seq++ {
		if p := r.places[seq]; p != nil && p.done != nil {
			f(seq, *p.done)
		}
	}
}

// Check is part of protocol.Checked.
func (r *replica) Check() error {
	if r.state == nil || r.fetch != nil {
		return nil
	}
	layers := int(r.top - r.committed)
	if r.lead.open != nil {
		layers++
	}
	if r.committed > r.executed || r.executed > r.top || r.state.Layers() != layers {
		return fmt.Errorf("committed %d, executed %d, top %d, %d layers, open: %v", r.committed, r.executed, r.top,
			r.state.Layers(), r.lead.open != nil)
	}
	return nil
}

package domino

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// role is what a replica is doing.
type role uint8

const (
	blank   role = iota // does not take part, or not yet
	member              // accepts, proposes in its track, learns
	removed             // was a member
)

// replica is an acceptor and learner of all tracks, the owner of one, and a possible coordinator.
type replica struct {
	kit.Replica

	opt       Options
	role      role
	group     []protocol.ID // the members, in order, by the state
	strangers []protocol.ID // who speak as members and are none by the state, at most maxMembers
	digit     uint64        // of the own track
	rule      rule

	acceptor    acceptor
	peers       map[protocol.ID]*peer // the members, the replica itself among them
	learner     learner
	coord       coordinator
	reads       reads
	queue       []kit.Entry // to be proposed in the own track
	after       smr.Slot    // those in the queue come after it, since their clients have seen what is there
	above       smr.Slot    // of all proposals: others have revoked what is below, and would not accept it
	ordered     []watched   // commands whose clients want to know when they are ordered
	orderedFrom smr.Slot    // the lowest of them
	wanted      map[kit.SessionID][]kit.Seq

	snapshot smr.Slot // of the newest one on disk
	sinceCut int      // commands executed since then
	uncut    int      // records that it left in the log
	saving   struct { // of a snapshot that is being written, when it began
		sinceCut int
		keep     int // commands to be left to replicas that lag
	}
	past     history
	fetching bool          // a Fetch is not answered
	asked    time.Duration // when it was sent
	progress smr.Slot      // what was executed when execution last went on
	stuck    int           // ticks since then

	probed uint64   // how long the own stream was at the last probe
	pinged uint64   // and at the last Ping
	quiet  int      // probes since it was shorter
	wake   smr.Slot // what the wake timer waits for, 0 if it is not set
	time   timekeeper
}

// peer is a member as others see it, or the replica itself: it sends itself what it sends to
// others, and counts it when it comes back, which is when it is on disk.
type peer struct {
	id       protocol.ID
	have     uint64 // of its stream
	claims   claims // Invariant: claims.Count <= have.
	pending  claims // the newest for which something of the stream is missing
	executed smr.Slot
	holds    map[protocol.ID]have // by owner
	promised kit.Ballot
	accepted uint64
	leads    bool
	silent   int // ticks since it was heard
	meter    *meter
	fresh    bool          // it was started again, and does not know whether the group was at work meanwhile
	shown    time.Duration // what its clock showed then

	out  flow   // of the own stream
	told uint64 // the last one of it that was ever sent
}

// claim takes claims that are known not to lack anything.
func (p *peer) claim(c claims) {
	p.claims.Closed, p.claims.Skipped = max(p.claims.Closed, c.Closed), max(p.claims.Skipped, c.Skipped)
	p.claims.Count = max(p.claims.Count, min(c.Count, p.have))
}

// The timers of a replica.
type (
	beatTimer     struct{} // a tick is over: besides the beat, all that is looked at in each
	wakeTimer     struct{} // the clock passes a slot that is in use
	campaignTimer struct{}
)

// Times, as multiples of ReplicaConfig.RoundTrip.
const (
	tick         = 0.5
	lease        = 4  // how far ahead promises by the clock are written to disk
	horizon      = 20 // how far ahead it is decided that the members do not change
	horizonLeft  = 14
	revokeAhead  = 12 // how far ahead slots of a failed replica are revoked
	revokeLeft   = 5
	campaignSpan = 1.5
	spare        = 2.5 // of these round trips fewer by this factor are enough, if they take what answers take
)

// And as ticks.
const (
	suspectTicks = 4 // a replica that was not heard for so long has failed
	// one for so long will not come back soon: slots are taken away some time ahead. What one lost
	// segment holds up is not as late
	goneTicks     = 6
	stalledTicks  = 4 // a track in which nothing was decided for so long needs the coordinator
	patientTicks  = 8
	candidateFor  = 10
	courtesyTicks = 6 // how long others leave it to the replica that is to coordinate first
	holdTicks     = 6
	resendTicks   = 3
	behindTicks   = 2
)

// newReplica returns a replica.
func newReplica(cfg smr.ReplicaConfig, o Options) (*replica, error) {
	base, err := kit.NewReplica("domino", cfg)
	if err != nil {
		return nil, err
	}
	if len(cfg.Members) > maxMembers {
		return nil, fmt.Errorf("domino: ReplicaConfig.Members has %d members, more than %d", len(cfg.Members), maxMembers)
	}
	if o, err = o.withDefaults(base.Cfg.RoundTrip); err != nil {
		return nil, err
	}
	r := &replica{Replica: base, opt: o, peers: map[protocol.ID]*peer{}, wanted: map[kit.SessionID][]kit.Seq{}}
	r.State.KeepApplied()
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin, Members: r.maybeTakePart, Leaving: r.onLeaving,
		Client: r.onClient, Other: r.onOther, Peer: r.onPeer, Timer: r.onTimer, Batch: r.flush, Flush: r.settle,
		Takes: r.takes, Installed: r.onInstalled, Saved: r.onSaved, Status: r.status,
		Doubtful: r.applyDoubtful, Lull: r.lullRules(),
	})
	r.acceptor = newAcceptor()
	r.learner = newLearner()
	r.coord.busy = map[trackID]uint64{}
	r.coord.revoking = map[protocol.ID]*revocation{}
	return r, nil
}

// ahead returns how many slots ahead of now something is decided in time for nobody to wait for it:
// as many round trips, or where answers take much longer than configured, enough of theirs, up to
// those of aheadTrip: a change of the members waits for what was decided, however fast answers are
// again by then. Where answers take longer for good, the decisions come late, as all others do.
func (r *replica) ahead(n float64) smr.Slot {
	measured := min(r.Tempo.Times(n/spare), time.Duration(n*float64(aheadTrip)))
	return smr.Slot(max(r.Times(n), measured))
}

// aheadTrip is what a round trip counts for at most when it decides how far ahead something is
// decided: the horizon is 2.5 s then, unless the configuration has a longer one.
const aheadTrip = 125 * time.Millisecond

// Receive takes a message. Probes are of the network only, and nothing follows from them.
func (r *replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case probe:
		if from != protocol.App && !r.Over() {
			r.onProbe(env, from, msg)
		}
	case echo:
		if from != protocol.App && !r.Over() {
			r.onEcho(env, from, msg)
		}
	default:
		r.Replica.Receive(env, from, msg)
	}
}

// onOther takes the commands of clients, which are not requests for a leader.
func (r *replica) onOther(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if m, ok := msg.(submit); ok {
		r.onClient(env, from, m)
	}
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	msg := letter.Msg
	switch msg := msg.(type) {
	case fetch:
		r.onFetch(env, from, msg)
	case decided:
		r.onDecided(env, from, msg)
	}
	p := r.peers[from]
	if r.role != member {
		return
	}
	if p == nil {
		if _, ok := msg.(news); ok { // only members tell news
			r.met(from)
		}
		return
	}
	p.silent = 0
	switch msg := msg.(type) {
	case news:
		r.onNews(env, p, msg)
	case missing:
		r.onMissing(env, p, msg)
	case accept:
		r.onAccept(env, from, msg)
	case prepare:
		r.onPrepare(env, from, msg)
	case promise:
		r.onPromise(env, from, msg)
	case refusal:
		r.onRefusal(env, msg)
	case revoke:
		r.onRevoke(env, from, msg)
	case revoked:
		r.onRevoked(env, from, msg)
	case learned:
		r.onLearned(from, msg)
	case poll:
		r.Admission.Send(env, from, polled{Round: msg.Round, Slot: r.latest()})
	case polled:
		r.onPolled(env, from, msg)
	}
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case beatTimer:
		r.onTick(env)
	case probeTimer:
		r.probe(env)
	case wakeTimer:
		r.wake = 0
		r.soon(env)
	case campaignTimer:
		r.campaign(env)
	}
}

// settle does what has become possible: decides, executes, answers. It runs once at the end of each
// call, in this order, as each step may make the next one possible: reads wait for what is
// executed, for example.
func (r *replica) settle(env *protocol.Env[smr.Message]) {
	if r.role == member {
		r.learn(env)
		r.coordinate(env)
		r.answerReads(env)
		r.tellOrdered(env)
		r.setWake(env)
	}
}

// soon has the others told what is new. A message for each vote would cost more than the votes.
func (r *replica) soon(env *protocol.Env[smr.Message]) {
	if r.role == member {
		r.Soon(env)
	}
}

// setWake has the others told when the clock passes the next slot that is in use. A command is
// executed when all have passed its slot, so each waits for the slowest to say so; the next tick
// would be up to half a round trip later. Slots that nobody uses wait for the tick.
func (r *replica) setWake(env *protocol.Env[smr.Message]) {
	next := r.learner.nextUsed(min(r.acceptor.closed, r.acceptor.skipped))
	if next == 0 {
		return
	}
	if now := r.now(env); next <= now {
		r.soon(env)
	} else if r.wake == 0 || next < r.wake {
		r.wake = next
		env.After(max(at(next-now), r.Times(0.01)), wakeTimer{})
	}
}

func (r *replica) onTick(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(tick)), beatTimer{})
	r.tickTime(env)
	if r.role == member {
		r.soon(env)
	}
	if last := r.acceptor.own.last(); last != r.pinged {
		r.pinged = last
		for _, id := range r.others() {
			// News waits for the disk, so it does not measure the network. Questions do not wait.
			r.Tempo.Ask(env, id)
		}
	}
	if !r.Tempo.Beat(env.Now, tick) {
		return
	}
	for _, id := range r.group {
		p := r.peers[id]
		p.silent++
	}
	r.forget()
	r.tickStreams()
	if r.role == member {
		r.tickStart(env)
	}
	r.tickCatchUp(env)
	r.tickReads(env)
	if r.role == member {
		r.tickCoordinator(env)
	}
}

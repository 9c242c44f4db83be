package kit

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
	waitingBatches     = 4    // times the bytes of a batch that these have
	maxReads           = 4096 // optimised reads that wait
	maxTimeoutDoubling = 10
	maxWants           = 8 // parts of a state that are asked for at once
	maxPageBytes       = 64 << 10

	// MaxResent is of how many places one message has things resent.
	MaxResent = 16
	// MaxIdleTicks is how many ticks are between two words of a replica that has nothing to do.
	MaxIdleTicks = 8
)

// Replica is the part of a member that all protocols have. Time is counted in ticks of half a round
// trip, as clocks may jump.
type Replica struct {
	Config bft.ReplicaConfig // with its defaults
	Dir    *Epoch            // the present one
	Format *wirefmt.Format[bft.Message]
	Others []protocol.ID

	// Store is entered by each call of the protocol, and left. It is nil if the disk is of no use.
	Store  *keyspace.State
	View   bft.View
	Active bool // the view has begun here
	Stable bft.Certificate[Checkpoint]
	// Invariant: Committed <= Executed <= Top. The layers of the state are those of the places above
	// Committed, up to Top; a primary's open batch has one above them.
	Committed, Executed, Top bft.Seq
	Requests                 Requests
	Lead                     Leading
	Latest                   time.Duration // of the times of all that was accepted

	Tick      int
	Since     int // the tick in which the view, or its change, began
	Doublings int // of the timeout
	Caught    int // primaries, at lies that they signed

	pace
	rules     Rules
	name      string
	st        *Statements
	performed map[bft.Seq]*Performed                   // Committed+1 to Top
	records   map[bft.Seq]uint64                       // of accepted orders, the oldest index in the log
	reached   map[protocol.ID][]bft.Signed[Checkpoint] // above Stable
	reads     []waitingRead
	// Invariant: links are of the epochs 0 to Dir.Epoch-1.
	links      []Link
	next       *Link // with which the epoch ends, until Turn
	linksAsked int   // a tick
	resent     resent
	transfer
	repair
}

// Rules are what a protocol tells its Replica.
type Rules interface {
	// History returns the history of the batches up to a place that is committed.
	History(bft.Seq) bft.Digest
	// Forget removes what is kept of places up to one.
	Forget(upTo bft.Seq)
	// Stabilized says that there is a new stable checkpoint. The replica may not have come to it yet.
	Stabilized(env *protocol.Env[bft.Message])
	// Turned says that another epoch has begun, in its first view, after the place of Dir.Base. What
	// is known of orders is void.
	Turned(env *protocol.Env[bft.Message])
}

// Performed is a batch that was executed in a layer of its own.
type Performed struct {
	Layer   *keyspace.Layer
	Batch   bft.Digest
	Results []Executed
}

// Executed is a request of a batch with what became of it.
type Executed struct {
	Request *bft.Request
	Digest  bft.Digest
	Entries []sessions.Entry
}

type waitingRead struct {
	from protocol.ID
	ask  ReadAsk
	need bft.Seq
}

// BeatTimer is the timer of ticks.
type BeatTimer struct{}

// Init makes a replica of a protocol of that name, or returns an error that names the field that is
// wrong.
func (r *Replica) Init(name string, c bft.ReplicaConfig, st *Statements, rules Rules) error {
	switch {
	case c.Directory == nil || c.Scheme == nil || c.Signer == nil || c.Service == nil:
		return fmt.Errorf("%s: ReplicaConfig: Directory, Scheme, Signer or Service is nil", name)
	case c.RoundTrip < 0 || c.CheckpointEvery < 0 || c.MaxBatch < 0 || c.MaxUnderway < 0 || c.ClockSlack < 0:
		return fmt.Errorf("%s: ReplicaConfig: a number is negative", name)
	case c.MaxBatch > defaultMaxBatch*defaultMaxBatch:
		return fmt.Errorf("%s: ReplicaConfig.MaxBatch is %d", name, c.MaxBatch)
	}
	if err := c.Directory.Validate(); err != nil {
		return err
	}
	var err error
	if c.Limits, err = c.Limits.WithDefaults(); err != nil {
		return fmt.Errorf("%s: ReplicaConfig: %w", name, err)
	}
	most := mostUnderCheckpoint(len(c.Directory.Members))
	if c.CheckpointEvery > most {
		return fmt.Errorf("%s: ReplicaConfig.CheckpointEvery is %d, more than %d: a view change of %d members would not fit "+
			"in a message", name, c.CheckpointEvery, most, len(c.Directory.Members))
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, defaultRoundTrip)
	c.CheckpointEvery = cmp.Or(c.CheckpointEvery, min(defaultCheckpoint, most))
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultMaxBatch)
	c.MaxUnderway = cmp.Or(c.MaxUnderway, defaultUnderway)
	c.ClockSlack = cmp.Or(c.ClockSlack, defaultClockSlack)
	*r = Replica{Config: c, Active: true, rules: rules, name: name, st: st,
		Requests: newRequests(st, &c), performed: map[bft.Seq]*Performed{},
		records: map[bft.Seq]uint64{}, reached: map[protocol.ID][]bft.Signed[Checkpoint]{}}
	r.adopt(Genesis(c.Directory))
	return nil
}

// Window is how far above the stable checkpoint places are used.
func (r *Replica) Window() bft.Seq { return 2 * bft.Seq(r.Config.CheckpointEvery) }

// Low is the place of the stable checkpoint.
func (r *Replica) Low() bft.Seq { return r.Stable.Body().Seq }

// Within reports whether a place is one of those that are under way. A checkpoint that is stable
// before this replica has come to it leaves it what is below, as it is about to come; but nothing
// of what an earlier epoch has decided, of whose members there may not be enough left here.
func (r *Replica) Within(seq bft.Seq) bool {
	return seq > max(min(r.Low(), r.Committed), r.Dir.Base.Seq) && seq <= r.Low()+r.Window()
}

// Primary reports whether this replica leads its view.
func (r *Replica) Primary() bool { return r.Dir.Primary(r.View).Key == r.Config.Signer.Key() }

// ToOthers sends a message to the other members.
func (r *Replica) ToOthers(env *protocol.Env[bft.Message], msg bft.Message) {
	for _, id := range r.Others {
		env.Send(id, msg)
	}
}

// OnPeer takes a message of another member that is one of this package, and reports whether it is.
// Bodies are the protocol's.
func (r *Replica) OnPeer(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) bool {
	switch m := msg.(type) {
	case Reached:
		r.onReached(env, m.Checkpoint)
	case StableProof:
		r.OnStable(env, m.Proof)
	case Wanted:
		if out, n := r.Requests.Answer(m); n > 0 && r.Affords(from, n) {
			env.Send(from, out)
		}
	case StateWanted:
		r.onStateWanted(env, from, m)
	case StatePage:
		r.onStatePage(env, m)
	default:
		return false
	}
	return true
}

// OnRead takes a query, which is answered from what is committed when all is up to a place.
func (r *Replica) OnRead(env *protocol.Env[bft.Message], from protocol.ID, m ReadAsk, need bft.Seq) {
	if _, ok := r.Dir.Clients[from]; !ok || len(r.reads) >= maxReads || len(m.Query) > r.Config.Limits.Command {
		return
	}
	r.reads = append(r.reads, waitingRead{from, m, need})
	r.AnswerReads(env)
}

// AnswerReads answers the queries that need not wait any longer. None is answered from a state of
// an earlier epoch: of those that have confirmed what that has, fewer may be members now.
func (r *Replica) AnswerReads(env *protocol.Env[bft.Message]) {
	if len(r.reads) == 0 || r.Fetching() || r.Committed < r.Dir.Base.Seq {
		return
	}
	rest := r.reads[:0]
	for _, w := range r.reads {
		if w.need > r.Committed {
			rest = append(rest, w)
			continue
		}
		result := r.answer(w.ask.Query)
		reply := ReadReply{ID: w.ask.ID, Epoch: r.Dir.Epoch, Digest: result.Digest()}
		if w.ask.Full {
			reply.Full, reply.Value = true, result.Value
		}
		env.Send(w.from, reply)
	}
	clear(r.reads[len(rest):])
	r.reads = rest
}

// ClampReads has no query wait for more than a place: what was above it is not there any more.
func (r *Replica) ClampReads(upTo bft.Seq) {
	for i := range r.reads {
		r.reads[i].need = min(r.reads[i].need, upTo)
	}
}

// Timely reports whether the times of a batch are in order, and near this replica's own unless the
// group's time is there already, which does not go back if a clock was wrong. One that is proposed
// again needs no such check: a replica whose clock has gone on could never accept it.
func (r *Replica) Timely(env *protocol.Env[bft.Message], b Batch) bool {
	for i, e := range b.Entries {
		if i > 0 && e.Time < b.Entries[i-1].Time || e.Time > r.Latest && (e.Time-env.Now).Abs() > r.Config.ClockSlack {
			return false
		}
	}
	return true
}

// Accept notes that a batch was accepted in a place, by a record of the log.
func (r *Replica) Accept(batch bft.Digest, seq bft.Seq, record uint64) {
	r.Logged(seq, record)
	for _, e := range r.Requests.batches[batch].Entries {
		r.Latest = max(r.Latest, e.Time)
	}
	r.Requests.Known(batch, seq)
	if seq > r.first {
		r.Requests.noteOrdered(batch)
	}
}

// Logged notes that the log has a record of a place.
func (r *Replica) Logged(seq bft.Seq, record uint64) {
	if _, ok := r.records[seq]; !ok {
		r.records[seq] = record
	}
}

// Standing returns how the replica is.
func (r *Replica) Standing() bft.Standing {
	return bft.Standing{Epoch: r.Dir.Epoch, Member: !r.Outside(), View: r.View, Active: r.Active, Stable: r.Low(),
		Committed: r.Committed, Executed: r.Executed, Top: r.Top, High: r.Low() + r.Window(), Transfers: r.transfers,
		Refused: r.refused, Repairs: r.repairs, Caught: r.Caught}
}

// State returns what the replica has committed. It is there to be looked at.
func (r *Replica) State(disk keyspace.Reader) keyspace.Reader {
	return keyspace.CommittedOn(disk, statePrefix)
}

// Check is part of protocol.Checked.
func (r *Replica) Check() error {
	if r.Store == nil || r.Fetching() {
		return nil
	}
	layers := int(r.Top - r.Committed)
	if r.Lead.open != nil {
		layers++
	}
	if r.Committed > r.Executed || r.Executed > r.Top || r.Store.Layers() != layers {
		return fmt.Errorf("committed %d, executed %d, top %d, %d layers, open: %v", r.Committed, r.Executed, r.Top,
			r.Store.Layers(), r.Lead.open != nil)
	}
	return nil
}

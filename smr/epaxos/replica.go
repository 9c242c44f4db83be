package epaxos

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Replica is a proposer, acceptor and learner.
type Replica struct {
	cfg        smr.ReplicaConfig
	interferer Interferer // nil: everything conflicts
	state      *kit.State
	admission  *kit.Admission
	desk       *kit.Desk
	tempo      kit.Tempo // of what others say of instances

	active  bool // takes part
	removed bool
	broken  bool         // the disk or the state machine: it does nothing any more
	gen     uint64       // how often the members have changed, from 1; 0 of one that joins and was told nothing yet
	group   []smr.Member // of the generation, in order of their IDs
	rows    []row        // of the group
	index   conflictIndex
	fences  []*instance // changes of the members that are not executed
	stamp   uint64      // the highest that was heard of

	// What is executed up to the newest checkpoint: it is in the snapshot, and everything else
	// comes after that checkpoint. Invariant: base <= onDisk <= stable <= done in each row.
	stable Deps
	// an instance that conflicts with all, the newest such one up to stable; Index 0 if there is
	// none
	checkpoint ID
	snapshot   smr.Slot // of the snapshot on disk
	onDisk     Deps     // what was stable in it
	saving     struct { // of the snapshot that is being written
		stable Deps
		first  uint64 // the record with which the log begins that it needs
	}
	even     smr.Slot // at the newest checkpoint
	taken    uint64   // checkpoints in this generation
	reach    Deps     // what was executed, and what that depends on
	logged   int      // instances of which there are records
	since    smr.Slot // entries that were executed since then
	high     smr.Slot // the highest stamp of these
	sessions sessionAges

	queue []kit.Entry // to be proposed
	early map[ticket]early

	mine      map[ID]*proposal
	proposing bool // for proposeTimer
	proposed  time.Duration
	pass      uint64 // of the search for what can be executed
	woken     []*instance
	executing bool
	waiting   []*attempt // recoveries that wait for other instances

	reads     reads
	ticks     uint64
	ticking   bool
	transfers *kit.Transfers
	ahead     protocol.ID // who is in a later generation; 0 for nobody
}

// The timers of a replica.
type (
	tickTimer    struct{}
	proposeTimer struct{}
)

// Times, in ticks of half a round trip as it is at present.
const (
	resendTicks  = 5 // own proposals
	askTicks     = 2 // before others are asked what became of an instance
	recoverTicks = 5 // before it is recovered, and up to recoverSpan more by chance
	recoverSpan  = 4
	attemptTicks = 8 // before a recovery is begun anew, and each time twice as many
	maxDoubled   = 5
	newsTicks    = 4
)

// Bounds.
const (
	maxAhead    = 1 << 16 // instances of a row beyond the executed ones
	maxInFlight = 4096    // own instances that are not decided
	maxRanges   = 64      // in a Fetch
	maxRecovers = 256     // recoveries that a tick begins
)

// NewReplica returns a replica. If the state machine is an Interferer, commands that do not
// conflict are executed in different orders at different replicas.
func NewReplica(cfg smr.ReplicaConfig) (*Replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("epaxos: %w", err)
	}
	group := cfg.Members
	if cfg.Join {
		group = nil
	}
	r := &Replica{cfg: cfg, state: kit.NewState(cfg.Machine, group), mine: map[ID]*proposal{}, early: map[ticket]early{},
		tempo: kit.NewTempo(cfg.RoundTrip)}
	r.interferer, _ = cfg.Machine.(Interferer)
	r.admission = kit.NewAdmission(cfg, r.state)
	r.desk = kit.NewDesk(cfg, r.state)
	r.transfers = kit.NewTransfers(r.admission, &r.tempo)
	if !cfg.Join {
		r.beginGeneration(1)
	}
	return r, nil
}

// Start takes over what is on the disk.
func (r *Replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	blank, err := r.load(env, log)
	if err != nil {
		r.fail(env, fmt.Sprintf("the disk does not have what was written to it: %v", err))
		return
	}
	r.admission.Start(env, blank)
	r.membersChanged(env)
	r.execute(env)
	r.flush(env)
}

// Receive takes a message.
func (r *Replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if q, ok := msg.(smr.StatusQuery); ok && from == protocol.App {
		env.Send(protocol.App, r.status(q.ID))
		return
	}
	if from == protocol.App || r.broken || r.admission.Refused() {
		return
	}
	switch msg := msg.(type) {
	case kit.Hello:
		r.admission.Hello(env, from, msg)
	case kit.Welcome:
		r.admission.Welcome(env, from, msg)
		r.maybeTakePart(env)
	case kit.Request:
		r.onRequest(env, from, msg)
	case kit.Ping, kit.Pong:
		r.tempo.Receive(env, from, msg)
	case kit.PartSaved:
		r.state.PartSaved(env, from)
	case kit.OpenRequest, kit.ChangeRequest, kit.ReadRequest:
		r.onClient(env, from, msg)
	case kit.Letter:
		if r.admission.Genuine(env, from, msg.Disk) {
			r.onReplica(env, from, msg.Msg)
		}
	}
	r.flush(env)
}

// flush does what comes at the end of each call.
func (r *Replica) flush(env *protocol.Env[smr.Message]) {
	r.maybeCheckpoint(env)
	r.answerReads(env)
	if r.active && len(r.queue) > 0 && len(r.mine) < maxInFlight {
		r.soon(env)
	}
	r.desk.Flush(env)
}

// onReplica takes what replicas say to each other.
func (r *Replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case kit.SnapshotChunk:
		r.onChunk(env, from, msg)
	case kit.SnapshotWanted:
		r.transfers.OnWanted(env, from, msg)
	case Fetch:
		r.onFetch(env, from, msg)
	case headed:
		r.onHeaded(env, from, msg)
	}
}

// onHeaded takes what replicas of one generation say to each other.
func (r *Replica) onHeaded(env *protocol.Env[smr.Message], from protocol.ID, msg headed) {
	h := msg.begin()
	switch {
	case h.Gen > r.gen:
		if !r.removed && r.ahead == 0 {
			r.ahead = from
			r.admission.SendAhead(env, from, Fetch{Head: r.head()})
			r.tick(env)
		}
		return
	case h.Gen < r.gen:
		if _, late := msg.(News); !late || r.state.Removed(from) {
			r.admission.SendAhead(env, from, News{Head: r.head(), Top: r.index.top.clone()})
		}
		return
	case !r.active || r.position(from) < 0:
		return
	}
	r.onPeer(env, from, msg)
}

func (r *Replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case PreAccept:
		r.onPreAccept(env, from, msg)
	case PreAccepted:
		r.onPreAccepted(env, from, msg)
	case Accept:
		r.onAccept(env, from, msg)
	case Accepted:
		r.onAccepted(env, from, msg)
	case Commit:
		r.onCommit(env, from, msg)
	case Lacking:
		r.onLacking(env, from, msg)
	case Recover:
		r.onRecover(env, from, msg)
	case Recovered:
		r.onRecovered(env, from, msg)
	case Validate:
		r.onValidate(env, from, msg)
	case Validated:
		r.onValidated(env, from, msg)
	case Waiting:
		r.onWaiting(env, msg)
	case Refusal:
		r.onRefusal(msg)
	case News:
		r.hear(msg.Top)
	case Poll:
		r.onPoll(env, from, msg)
	case Polled:
		r.onPolled(from, msg)
	case Settled:
		r.onSettled(env, from, msg)
	}
}

func (r *Replica) head() Head { return Head{r.gen} }

// others calls f with each other member.
func (r *Replica) others(f func(id protocol.ID)) {
	for _, m := range r.group {
		if m.ID != r.cfg.ID {
			f(m.ID)
		}
	}
}

// Expire does what a timer is for.
func (r *Replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.broken || r.admission.Refused() {
		return
	}
	switch t := t.(type) {
	case kit.AdmissionTimer:
		r.admission.Expire(env)
		r.maybeTakePart(env)
	case tickTimer:
		r.ticking = false
		r.onTick(env)
	case kit.TransferTimer:
		// one that failed is asked for again
		r.transfers.OnTimer(env, t.To)
	case kit.SaveTimer:
		done, err := r.state.ContinueSave(env)
		r.saved(env, done, err)
	case proposeTimer:
		r.proposing, r.proposed = false, env.Now
		r.propose(env)
	}
	r.flush(env)
}

// Broken asks the peer for what may be lost. Own proposals are sent again by the clock.
func (r *Replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if r.active && !r.broken && r.position(from) >= 0 && !r.admission.Refused() {
		r.fetch(env, from)
	}
}

// maybeTakePart has a replica that was admitted take part.
func (r *Replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.active || r.removed || r.gen == 0 || !r.admission.Admitted() || r.position(r.cfg.ID) < 0 {
		return
	}
	r.active = true
	r.tick(env)
}

// membersChanged says who the members are, at the start and when they have changed.
func (r *Replica) membersChanged(env *protocol.Env[smr.Message]) {
	r.admission.MembersChanged(env)
	if r.state.Removed(r.cfg.ID) {
		if !r.removed && !r.admission.Refused() {
			env.Send(protocol.App, smr.RefusedAsRemoved(r.cfg.ID))
		}
		r.removed, r.active = true, false
		return
	}
	r.maybeTakePart(env)
}

func (r *Replica) status(id smr.CallID) smr.Status {
	role := "replica"
	switch {
	case r.broken || r.admission.Refused():
		role = "refused"
	case r.removed:
		role = "removed"
	case !r.active:
		role = "blank"
	}
	applied := r.state.Applied()
	if r.interferer != nil {
		applied = r.level()
	}
	s := smr.Status{
		ID: id, Replica: r.cfg.ID, Role: role, Serves: role == "replica", Ballot: r.gen, Committed: applied, Applied: applied,
		Snapshot: r.snapshot, LogSize: r.logged, Sessions: r.state.Sessions(), Members: r.state.Members(),
	}
	for p := range r.rows {
		w := &r.rows[p]
		for x := w.done + 1; x <= w.top(); x++ {
			if i := w.at(x); !i.executed && (i.phase != committed || !i.nothing) {
				s.Committed++ // or will be, perhaps
			}
		}
	}
	return s
}

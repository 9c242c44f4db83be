package epaxos

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// replica is a proposer, acceptor and learner.
type replica struct {
	kit.Replica
	interferer Interferer // nil: everything conflicts

	active     bool         // takes part
	removed    bool         // and only sends its state to others
	generation uint64       // how often the members have changed, from 1; 0 of one that joins and was told nothing yet
	group      []smr.Member // of the generation, in order of their IDs
	rows       []row        // of the group
	index      conflictIndex
	fences     []*instance // changes of the members that are not executed
	stamp      uint64      // the highest that was heard of

	// What is executed up to the newest checkpoint: it is in the snapshot, and everything else
	// comes after that checkpoint. Invariant: base <= onDisk <= stable <= done in each row.
	stable deps
	// an instance that conflicts with all, the newest such one up to stable; Index 0 if there is
	// none
	checkpoint instanceID
	snapshot   smr.Slot // of the snapshot on disk
	onDisk     deps     // what was stable in it
	saving     struct { // of the snapshot that is being written
		stable deps
		first  uint64 // the record with which the log begins that it needs
	}
	even     smr.Slot // at the newest checkpoint
	taken    uint64   // checkpoints in this generation
	reach    deps     // what was executed, and what that depends on
	logged   int      // instances of which there are records
	since    smr.Slot // entries that were executed since then
	high     smr.Slot // the highest stamp of these
	sessions sessionAges

	queue []kit.Entry // to be proposed
	early map[ticket]early

	mine      map[instanceID]*proposal
	pass      uint64 // of the search for what can be executed
	woken     []*instance
	executing bool
	waiting   []*attempt // recoveries that wait for other instances

	underway map[protocol.ID]*kit.Underway // commands that members were sent again

	reads   reads
	beats   uint64
	beating bool
	ahead   protocol.ID // who is in a later generation; 0 for nobody
}

type beatTimer struct{}

// Times, in beats of half a round trip as it is at present.
const (
	resendBeats  = 5 // own proposals
	askBeats     = 2 // before others are asked what became of an instance
	recoverBeats = 5 // before it is recovered, and up to recoverSpan more by chance
	recoverSpan  = 4
	attemptBeats = 8 // before a recovery is begun anew, and each time twice as many
	maxDoubled   = 2
	newsBeats    = 4
)

// Bounds.
const (
	maxAhead    = 1 << 16 // instances of a row beyond the executed ones
	maxInFlight = 4096    // own instances that are not decided
	maxRanges   = 64      // in a Fetch
	maxRecovers = 256     // recoveries that a beat begins
)

// newReplica returns a replica. If the state machine is an Interferer, commands that do not
// conflict are executed in different orders at different replicas.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("epaxos", cfg)
	if err != nil {
		return nil, err
	}
	r := &replica{Replica: base, mine: map[instanceID]*proposal{}, early: map[ticket]early{},
		underway: map[protocol.ID]*kit.Underway{}}
	r.interferer, _ = cfg.Machine.(Interferer)
	r.State.KeepApplied()
	if r.interferer != nil {
		r.State.Around(kit.ApplyHooks{
			Loaded: r.loadSessions, Before: func(e kit.Entry) { r.sessions.use(r.State, e) },
			After: func(reply kit.Reply) { r.sessions.opens(reply) },
		})
	}
	if !cfg.Join {
		r.beginGeneration(1)
	}
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin, Members: r.onMembers, Gone: r.gone,
		Client: r.onClient, Peer: r.onPeer, Timer: r.onTimer, Batch: r.propose, Flush: r.flush,
		Takes: r.takes, Front: placeLayout.Length, Installed: r.onInstalled, Saved: r.onSaved, Status: r.status,
		Doubtful: r.applyDoubtful,
		Lull:     kit.LullRules{Idle: r.idle, Beat: beatTimer{}, Patience: r.lullPatience},
	})
	return r, nil
}

func (r *replica) onBegin(env *protocol.Env[smr.Message]) {
	r.execute(env)
	r.flush(env)
}

// gone: a replica that was removed still sends the state to others that lag, who may have nobody
// else for that.
func (r *replica) gone() bool { return false }

// flush does what comes at the end of each call.
func (r *replica) flush(env *protocol.Env[smr.Message]) {
	if r.Over() {
		return
	}
	r.maybeCheckpoint(env)
	r.answerReads(env)
	if r.active && len(r.queue) > 0 && len(r.mine) < maxInFlight {
		r.Soon(env)
	}
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch msg := letter.Msg.(type) {
	case fetch:
		r.onFetch(env, from, msg)
	case headed:
		r.onHeaded(env, from, msg)
	}
}

// onHeaded takes what replicas of one generation say to each other.
func (r *replica) onHeaded(env *protocol.Env[smr.Message], from protocol.ID, msg headed) {
	h := msg.begin()
	switch {
	case h.Generation > r.generation:
		if !r.removed && r.ahead == 0 {
			r.ahead = from
			r.Admission.SendAhead(env, from, fetch{head: r.head()})
			r.nextBeat(env)
		}
		return
	case h.Generation < r.generation:
		if _, late := msg.(news); !late || r.State.Removed(from) {
			r.Admission.SendAhead(env, from, news{head: r.head(), Top: r.index.top.clone()})
		}
		return
	case !r.active || r.position(from) < 0:
		return
	}
	r.onInstances(env, from, msg)
}

// onInstances takes what is said about instances of the present generation.
func (r *replica) onInstances(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case preAccept:
		r.onPreAccept(env, from, msg)
	case preAccepted:
		r.onPreAccepted(env, from, msg)
	case accept:
		r.onAccept(env, from, msg)
	case accepted:
		r.onAccepted(env, from, msg)
	case commit:
		r.onCommit(env, from, msg)
	case lacking:
		r.onLacking(env, from, msg)
	case recover:
		r.onRecover(env, from, msg)
	case recovered:
		r.onRecovered(env, from, msg)
	case validate:
		r.onValidate(env, from, msg)
	case validated:
		r.onValidated(env, from, msg)
	case waiting:
		r.onWaiting(env, msg)
	case refusal:
		r.onRefusal(msg)
	case news:
		r.hear(msg.Top)
	case poll:
		r.onPoll(env, from, msg)
	case polled:
		r.onPolled(from, msg)
	case settled:
		r.onSettled(env, from, msg)
	}
}

func (r *replica) head() head { return head{r.generation} }

// others calls f with each other member.
func (r *replica) others(f func(id protocol.ID)) {
	for _, m := range r.group {
		if m.ID != r.Cfg.ID {
			f(m.ID)
		}
	}
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	if _, ok := t.(beatTimer); ok {
		r.beating = false
		r.onBeat(env)
	}
}

// Broken asks the peer for what may be lost. Own proposals are sent again by the clock.
func (r *replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	delete(r.underway, from)
	if r.active && !r.Over() && r.position(from) >= 0 {
		r.fetch(env, from)
	}
}

// maybeTakePart has a replica that was admitted take part.
func (r *replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.active || r.removed || r.generation == 0 || !r.Admission.Admitted() || r.position(r.Cfg.ID) < 0 {
		return
	}
	r.active = true
	r.nextBeat(env)
}

// onMembers follows a change of the members.
func (r *replica) onMembers(env *protocol.Env[smr.Message]) {
	if !r.State.Removed(r.Cfg.ID) {
		r.maybeTakePart(env)
		return
	}
	if !r.removed {
		env.Send(protocol.App, smr.RefusedAsRemoved(r.Cfg.ID))
	}
	r.removed, r.active = true, false
}

func (r *replica) status(s *smr.Status) {
	s.Ballot, s.Snapshot, s.LogSize = r.generation, r.snapshot, r.logged
	switch {
	case r.removed:
		s.Role = "removed"
	case !r.active:
		s.Role = "blank"
	default:
		s.Role, s.Serves = "replica", true
	}
	if r.interferer != nil {
		s.Applied = r.level()
	}
	s.Committed = s.Applied
	for p := range r.rows {
		w := &r.rows[p]
		for x := w.done + 1; x <= w.top(); x++ {
			if i := w.at(x); !i.executed && (i.phase != phaseCommitted || !i.nothing) {
				s.Committed++ // or will be, perhaps
			}
		}
	}
}

// idle reports whether the replica has nothing to do: all instances that it knows of are executed.
func (r *replica) idle() (mark uint64, ok bool) {
	if !r.active || r.ahead != 0 || r.Batch.Waits() ||
		len(r.queue)+len(r.mine)+len(r.waiting)+len(r.fences)+len(r.reads.queue)+len(r.reads.polls) > 0 {
		return 0, false
	}
	marks := []uint64{r.generation}
	for p := range r.rows {
		if w := &r.rows[p]; w.done < w.top() {
			return 0, false
		}
		marks = append(marks, r.rows[p].top())
	}
	return kit.MarkOf(marks...), true
}

// lullPatience is five beats, as everywhere else.
func (r *replica) lullPatience() time.Duration { return r.Tempo.Times(resendBeats * 0.5) }

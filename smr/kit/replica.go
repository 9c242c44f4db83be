package kit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Replica is the replica around a protocol's rules. The protocol's own embeds it and gives it its
// Rules; Replica has what a node needs: Start, Receive and Expire. It reads the disk, is admitted,
// answers for its status, takes and sends snapshots, and knows how it ended; what is the protocol's
// affair it hands on.
type Replica struct {
	Cfg       smr.ReplicaConfig // with its defaults
	State     *State
	Admission *Admission
	Desk      *Desk
	Tempo     *Tempo
	Transfers *Transfers
	Batch     Batch // of what Soon was called for
	Resting   *Resting
	Lull      *Lull

	name    string
	rules   Rules
	end     end
	failure error // why, if it has failed
}

// end is how a replica has ended: it does nothing any more.
type end uint8

const (
	running    end = iota
	endFailed      // its disk or its state cannot be trusted
	endRemoved     // it is no member any more
)

// Rules are what a protocol does in its replica's calls. Those without "may be nil" must be there.
type Rules struct {
	// Load takes over what is on the disk, and reports whether that is nothing.
	Load func(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (blank bool, err error)
	// Begin comes at the end of Start. It may be nil.
	Begin func(env *protocol.Env[smr.Message])
	// Members follows the members: it is called at the start, when they have changed, and after an
	// answer by which the replica may have been admitted, but not of a replica that is gone. It may
	// be nil.
	Members func(env *protocol.Env[smr.Message])
	// Gone reports whether the replica was a member and is not any more. nil: as soon as the state
	// says so.
	Gone func() bool

	// Client takes what a client asks for.
	Client func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message)
	// Other takes a message of the protocol's that comes outside a letter. nil: there are none.
	Other func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message)
	// Former reports whether another replica was a member and has no say any more. It is told so, and
	// not listened to. nil: nobody is.
	Former func(id protocol.ID) bool
	// Peer takes what another replica says on its right disk. Of the parts of states, and what is said
	// about them, Replica has taken what there is to take.
	Peer func(env *protocol.Env[smr.Message], from protocol.ID, letter Letter)
	// Joins is called when a replica with a new disk waits to be added. It may be nil.
	Joins func(env *protocol.Env[smr.Message], id protocol.ID, disk Incarnation)
	// HandOver has another replica lead, or the one that has most if to is 0, and returns which, or
	// why none. nil: the protocol hands nothing over.
	HandOver func(env *protocol.Env[smr.Message], to protocol.ID) (successor protocol.ID, reason string)
	// Rest has a leader's group rest that has nothing to do. Without it the group never rests.
	Rest RestRules
	// Lull has a group rest that has nothing to do, in a protocol whose members all beat to each
	// other. Without Rest and Lull the group never rests.
	Lull LullRules
	// Timer does what one of the protocol's timers is for.
	Timer func(env *protocol.Env[smr.Message], t protocol.Timer)
	// Batch sends what has come up since Soon was called. It is called once for all of it, and may be
	// nil where nobody calls Soon.
	Batch func(env *protocol.Env[smr.Message])
	// Flush comes at the end of each call, before clients are answered. It may be nil.
	Flush func(env *protocol.Env[smr.Message])

	// Takes reports whether the replica takes a part of another one's state, and up to which slot it
	// has all itself. nil: it takes each, and has what is applied.
	Takes func(from protocol.ID, part SnapshotChunk) (has smr.Slot, ok bool)
	// Wanted goes on with a state that is on its way to another replica. nil: Transfers.OnWanted does.
	Wanted func(env *protocol.Env[smr.Message], from protocol.ID, disk Incarnation, m SnapshotWanted)
	// Front tells how long what the protocol has in front of a state is. nil: it has nothing there.
	Front func(begin []byte) (sizeBytes int, ok bool)
	// Fits reports whether a snapshot that has arrived is one to install. nil: each is.
	Fits func(s *Arrived) bool
	// Installed goes on from a snapshot that was just put in the place of the state. A protocol
	// without it sends and takes states by itself, in Peer, or not at all. One that makes none beside
	// its commands lacks Saved.
	Installed func(env *protocol.Env[smr.Message], s *Arrived) error
	// Saved cuts the log if a snapshot is on the disk.
	Saved func(env *protocol.Env[smr.Message], done bool, err error)

	// Failed is called when the state could not be sent to a replica. nil: that asks again.
	Failed func(env *protocol.Env[smr.Message], to protocol.ID)

	// Dismissed is called when a member says that the replica was removed. nil: it ends.
	Dismissed func(env *protocol.Env[smr.Message])
	// Leaving is called before a replica that was removed ends. It may be nil.
	Leaving func(env *protocol.Env[smr.Message])
	// Status says what the protocol knows beside Replica: the role of one that takes part.
	Status func(s *smr.Status)
	// Doubtful executes what was accepted and is not known to be decided, in a replica that is read
	// from a disk for that only, and returns how many entries that were. nil: see smr.Protocol.
	Doubtful func(env *protocol.Env[smr.Message]) (n int, err error)
}

// NewReplica returns the replica of a protocol that is called name. It needs its Rules.
func NewReplica(name string, cfg smr.ReplicaConfig) (Replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return Replica{}, fmt.Errorf("%s: %w", name, err)
	}
	group := cfg.Members
	if cfg.Join {
		group = nil
	}
	tempo := NewTempo(cfg.RoundTrip)
	r := Replica{Cfg: cfg, State: NewState(cfg.Machine, group), Tempo: &tempo, name: name}
	r.Admission = NewAdmission(cfg, r.State)
	r.Desk = NewDesk(cfg, r.State, r.Admission)
	r.Transfers = NewTransfers(r.Admission, r.Tempo)
	return r, nil
}

// Follow gives the replica its rules, before anything else is done with it.
func (r *Replica) Follow(rules Rules) {
	r.rules = rules
	r.Resting = newResting(r, rules.Rest)
	r.Lull = newLull(r, rules.Lull)
}

// Beat tells others that the replica is there, if it is to say so, and measures how long answers
// take.
func (r *Replica) Beat(env *protocol.Env[smr.Message], to []protocol.ID, msg smr.Message) {
	asks := r.Tempo.Asks()
	for _, id := range to {
		if r.Admission.Speaks() {
			r.Admission.SendAhead(env, id, msg)
		}
		if asks {
			r.Tempo.Ask(env, id)
		}
	}
}

// Times returns a multiple of the configured round trip: for what does not wait for an answer.
func (r *Replica) Times(n float64) time.Duration { return time.Duration(n * float64(r.Cfg.RoundTrip)) }

// Soon has Rules.Batch called when what has come up by now was taken, so that it travels, and is
// written, together.
func (r *Replica) Soon(env *protocol.Env[smr.Message]) { r.Batch.Soon(env, r.Cfg.RoundTrip) }

// Arriving reports whether a snapshot is on its way here. Meanwhile a replica that lags asks
// nobody: another one would read all of its state for nothing.
func (r *Replica) Arriving(env *protocol.Env[smr.Message]) bool {
	return r.State.Arriving(env.Now, 2*r.Tempo.Times(ChunkPatience))
}

// Over reports whether the replica does nothing any more.
func (r *Replica) Over() bool { return r.end != running || r.Admission.Refused() }

// Start takes over what is on the disk.
func (r *Replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	blank, err := r.rules.Load(env, log)
	if err != nil {
		r.Fail(env, fmt.Errorf("the disk does not have what was written to it: %w", err))
		return
	}
	r.Admission.Start(env, blank)
	r.MembersChanged(env)
	if r.rules.Begin != nil {
		r.rules.Begin(env)
	}
}

// Receive takes a message.
func (r *Replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if from == protocol.App {
		r.onApp(env, msg)
		return
	}
	if r.Over() {
		return
	}
	r.Resting.onWork(env, msg)
	if wakes(msg) {
		r.Lull.stir(env)
	}
	switch msg := msg.(type) {
	case Hello:
		r.onHello(env, from, msg)
	case Welcome:
		r.Admission.Welcome(env, from, msg)
		r.FindPart(env)
	case Founding:
		r.Admission.Founding(env, from, msg)
	case OtherGroup:
		r.Admission.OtherGroup(env, from, msg)
	case Ping, Pong:
		r.Tempo.Receive(env, from, msg)
		return
	case PartSaved:
		r.State.PartSaved(env, from)
	case Request, OpenRequest, ChangeRequest, ReadRequest:
		r.rules.Client(env, from, msg)
	case Letter:
		if r.Admission.Genuine(env, from, msg.Disk) {
			r.onLetter(env, from, msg)
		}
	default:
		if r.rules.Other != nil {
			r.Lull.stir(env)
			r.rules.Other(env, from, msg)
		}
	}
	r.flush(env)
}

func (r *Replica) onApp(env *protocol.Env[smr.Message], msg smr.Message) {
	switch msg := msg.(type) {
	case smr.StatusQuery:
		env.Send(protocol.App, r.Status(msg.ID))
	case smr.HandOver:
		if r.rules.HandOver == nil {
			return
		}
		if r.Over() {
			reason := fmt.Sprintf("replica %d takes no part", r.Cfg.ID)
			env.Send(protocol.App, smr.HandingOver{ID: msg.ID, Reason: reason})
			return
		}
		r.Resting.onWork(env, msg)
		to, reason := r.rules.HandOver(env, msg.To)
		env.Send(protocol.App, smr.HandingOver{ID: msg.ID, To: to, Reason: reason})
		r.flush(env)
	}
}

func (r *Replica) onHello(env *protocol.Env[smr.Message], from protocol.ID, m Hello) {
	r.Admission.Hello(env, from, m)
	_, member := r.State.Member(from)
	disk, there := r.Admission.Joiner(from)
	if r.rules.Joins != nil && m.Join && !member && there && disk == m.Disk && !r.State.Removed(from) {
		r.rules.Joins(env, from, disk)
	}
}

func (r *Replica) onLetter(env *protocol.Env[smr.Message], from protocol.ID, letter Letter) {
	if _, ok := letter.Msg.(Removed); ok {
		if _, member := r.State.Member(from); member {
			r.onDismissed(env)
		}
		return
	}
	switch msg := letter.Msg.(type) {
	case RestNow:
		r.Resting.onRestNow(env, from, msg)
	case Rested:
		r.Resting.onRested(env, from, msg)
	case Drowsy:
		r.Lull.onDrowsy(env, from, msg)
	default:
		r.Resting.onHeard(env.Now, from)
		r.Lull.onHeard(env, from)
		if r.rules.Former != nil && r.rules.Former(from) {
			r.Admission.SendAhead(env, from, Removed{})
			return
		}
		if r.rules.Installed != nil {
			r.onTransfer(env, from, letter)
		}
		r.rules.Peer(env, from, letter)
	}
}

// onTransfer takes a part of a state, or what is said of one that is on its way. To send or take a
// state is no vote, so a replica whose disk may not vote does so, too; and what a state has is
// decided, whoever sends it.
func (r *Replica) onTransfer(env *protocol.Env[smr.Message], from protocol.ID, letter Letter) {
	switch msg := letter.Msg.(type) {
	case SnapshotChunk:
		has, ok := r.State.Applied(), true
		if r.rules.Takes != nil {
			has, ok = r.rules.Takes(from, msg)
		}
		if ok {
			r.takeChunk(env, from, msg, has)
		}
	case SnapshotWanted:
		if r.rules.Wanted != nil {
			r.rules.Wanted(env, from, letter.Disk, msg)
		} else {
			r.Transfers.OnWanted(env, from, msg)
		}
	}
}

func (r *Replica) onDismissed(env *protocol.Env[smr.Message]) {
	if r.rules.Dismissed != nil {
		r.rules.Dismissed(env)
	} else {
		r.Leave(env)
	}
}

// Expire does what a timer is for.
func (r *Replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.Over() {
		return
	}
	switch t := t.(type) {
	case AdmissionTimer:
		r.Admission.Expire(env)
		r.FindPart(env)
	case TransferTimer:
		if r.Transfers.OnTimer(env, t.To) && r.rules.Failed != nil {
			r.rules.Failed(env, t.To)
		}
	case SaveTimer:
		done, err := r.State.ContinueSave(env)
		r.rules.Saved(env, done, err)
	case FlushTimer:
		r.Batch.Flushed(env.Now)
		r.rules.Batch(env)
	default:
		if t == r.rules.Lull.Beat && r.Lull.skips(env) {
			return
		}
		r.rules.Timer(env, t)
	}
	r.flush(env)
}

// flush ends a call. One that has failed says nothing more of its state.
func (r *Replica) flush(env *protocol.Env[smr.Message]) {
	if r.end == endFailed {
		return
	}
	if r.rules.Flush != nil {
		r.rules.Flush(env)
	}
	r.Admission.wrote(env)
	r.Resting.flush(env.Now)
	r.Desk.Flush(env)
}

// MembersChanged says who the members are, at the start and when they have changed. A replica that
// was removed ends.
func (r *Replica) MembersChanged(env *protocol.Env[smr.Message]) {
	r.Admission.MembersChanged(env)
	r.FindPart(env)
}

// FindPart has the protocol look what its replica's part is among the members, or ends the replica
// if it has none any more.
func (r *Replica) FindPart(env *protocol.Env[smr.Message]) {
	switch {
	case r.Over():
	case r.rules.Gone == nil && r.State.Removed(r.Cfg.ID), r.rules.Gone != nil && r.rules.Gone():
		r.Leave(env)
	case r.rules.Members != nil:
		r.rules.Members(env)
	}
}

// takeChunk takes a part of a snapshot of another replica that has more than this one, which has
// all up to a slot. When it is whole it is put in the place of the state.
func (r *Replica) takeChunk(env *protocol.Env[smr.Message], from protocol.ID, m SnapshotChunk, has smr.Slot) {
	answer, whole, err := r.State.Take(env, m, has, r.rules.Front)
	if (whole != nil || err != nil) && !r.install(env, whole, err) {
		return
	}
	r.Admission.Send(env, from, answer)
}

// Install puts a snapshot in the place of the state, and reports whether it did.
func (r *Replica) Install(env *protocol.Env[smr.Message], s *Arrived) bool {
	return r.install(env, s, nil)
}

func (r *Replica) install(env *protocol.Env[smr.Message], s *Arrived, err error) bool {
	if err == nil {
		if r.rules.Fits != nil && !r.rules.Fits(s) {
			return false
		}
		err = r.State.Install(env, s)
	}
	if err == nil {
		err = r.rules.Installed(env, s)
	}
	if err != nil {
		r.Fail(env, fmt.Errorf("a snapshot could not be restored, so the state cannot be trusted: %w", err))
		return false
	}
	return true
}

// Leave ends a replica that was removed.
func (r *Replica) Leave(env *protocol.Env[smr.Message]) {
	if r.Over() {
		return
	}
	if r.rules.Leaving != nil {
		r.rules.Leaving(env)
	}
	r.end = endRemoved
	env.Send(protocol.App, smr.RefusedAsRemoved(r.Cfg.ID))
}

// Fail ends a replica whose state cannot be trusted or kept.
func (r *Replica) Fail(env *protocol.Env[smr.Message], err error) {
	r.end, r.failure = endFailed, err
	env.Send(protocol.App, smr.Refused{Reason: err.Error()})
}

// Status returns the answer to a question of the application.
func (r *Replica) Status(id smr.CallID) smr.Status {
	s := smr.Status{
		ID: id, Replica: r.Cfg.ID, Committed: r.State.Applied(), Applied: r.State.Applied(),
		Sessions: r.State.Sessions(), Members: r.State.Members(), Resting: r.Resting.Is() || r.Lull.Is(),
		Removed: slices.Clone(r.State.members.removed), Waits: r.Admission.Waits(),
	}
	r.rules.Status(&s)
	switch {
	case r.end == endRemoved:
		s.Role, s.Serves = "removed", false
	case r.Over():
		s.Role, s.Serves = "refused", false
	}
	return s
}

// Salvage executes all that a disk holds: see SalvageDisk.
func (r *Replica) Salvage(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	if _, err := r.rules.Load(env, log); err != nil {
		return smr.Salvaged{}, err
	}
	// What is executed may change the members, and so say of which disk this replica is one.
	if err := r.Admission.identify(env); err != nil {
		return smr.Salvaged{}, fmt.Errorf("%s: the replica's %w", r.name, err)
	}
	doubtful, err := r.rules.Doubtful(env)
	switch {
	case err != nil:
	case r.end == endFailed:
		err = r.failure
	case r.Admission.Refused():
		err = errors.New(r.Admission.refused)
	}
	if err != nil {
		return smr.Salvaged{}, fmt.Errorf("%s: %w", r.name, err)
	}
	return r.State.Salvaged(doubtful), nil
}

// A salvager is a replica that can be read from its disk.
type salvager interface {
	Salvage(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (smr.Salvaged, error)
}

// SalvageOf makes smr.Protocol.Salvage of a protocol's constructor.
func SalvageOf[R salvager](build func(smr.ReplicaConfig) (R, error)) func(
	smr.ReplicaConfig, *protocol.Env[smr.Message], []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	return func(
		cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
	) (smr.Salvaged, error) {
		r, err := build(cfg)
		if err != nil {
			return smr.Salvaged{}, err
		}
		return r.Salvage(env, log)
	}
}

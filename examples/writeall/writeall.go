// Package writeall is the smallest protocol of its family: the member with the lowest ID orders the
// commands, and what all members have on their disks is decided. It is there to be read, with
// "Write a protocol" in smr/DESIGN.md, and not to be run: while one member is down nothing is
// decided, its members never change, and it keeps its log for ever. That is what the other
// protocols are about.
//
// Why it is right: all that is decided comes from one log, which its owner writes to its disk
// before anybody sees it. So no two replicas have different entries in a slot, whatever crashes;
// and an entry that is decided is on all disks.
package writeall

import (
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// What replicas say to each other.
type (
	// write is the entries of consecutive slots from First on, which the receiver is to write down.
	write struct {
		First   smr.Slot
		Decided smr.Slot // slots up to it are decided
		Entries []kit.Entry
	}

	// written answers it: all slots up to Last are on the sender's disk.
	written struct{ Last smr.Slot }
)

// record is what the log holds: the entries of consecutive slots from First on.
type record struct {
	First   smr.Slot
	Entries []kit.Entry
}

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("writeall", 1, kit.Kind(64, writeFields), kit.Kind(65, writtenFields), kit.Kind(80, recordFields))
}

func writeFields(c *wirefmt.Coder, m *write) {
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Decided)
	kit.EntriesFields(c, &m.Entries)
}

func writtenFields(c *wirefmt.Coder, m *written) { wirefmt.Uint(c, &m.Last) }

func recordFields(c *wirefmt.Coder, m *record) {
	wirefmt.Uint(c, &m.First)
	kit.EntriesFields(c, &m.Entries)
}

// Protocol returns the protocol as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "writeall",
		Doc:        "Write-all: the first member orders the commands, and all members write them down.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.PlainClient,
		Codec:      codec(),
	}
}

// A replica is one member: the protocol's rules in a kit.Replica. Of that it uses State, which has
// the state machine, the sessions and the members; Admission, by which no disk takes part under an
// ID that has had another one; and as the leader Desk, which takes what clients ask for, and
// answers.
type replica struct {
	kit.Replica

	log     []kit.Entry // of slots from 1 on
	decided smr.Slot    // Invariant: decided is State.Applied() and at most len(log).
	written map[protocol.ID]smr.Slot
	mustSee smr.Slot // queries wait until the slots that may have been decided before this start are decided again
}

// beatTimer is the timer of what is sent again.
type beatTimer struct{}

func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("writeall", cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Join {
		return nil, fmt.Errorf("writeall: Join: nobody can be added to a group of this protocol")
	}
	r := &replica{Replica: base, written: map[protocol.ID]smr.Slot{}}
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin, Client: r.onClient, Peer: r.onPeer, Timer: r.onTimer, Status: r.status,
	})
	return r, nil
}

// leader returns who orders the commands.
func (r *replica) leader() smr.Member { return r.State.Members()[0] }

func (r *replica) leads() bool { return r.leader().ID == r.Cfg.ID }

func (r *replica) last() smr.Slot { return smr.Slot(len(r.log)) }

// load takes over what is on the disk.
func (r *replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, nil, nil)
	if err != nil {
		return false, err
	}
	for _, rec := range log {
		m, ok := rec.Msg.(record)
		if !ok || m.First != r.last()+1 {
			return false, fmt.Errorf("record %d does not follow the %d slots before it", rec.Index, r.last())
		}
		r.log = append(r.log, m.Entries...)
	}
	r.mustSee = r.last()
	return found.Blank, nil
}

func (r *replica) onBegin(env *protocol.Env[smr.Message]) { env.After(0, beatTimer{}) }

// onClient takes what a client wants, or says who leads.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case kit.ChangeRequest:
		env.SendAhead(from, kit.Replies{Session: msg.Session, Items: []kit.CommandReply{
			{Seq: msg.Seq, Outcome: smr.Rejected, Reason: "the members of this protocol do not change"},
		}})
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	default:
		if !r.leads() {
			env.SendAhead(from, kit.Redirect{Leader: r.leader()})
		} else if r.Admission.Admitted() {
			r.propose(env, r.Desk.Take(env, from, msg, nil))
		}
	}
}

// onRead answers queries by the leader's state, and asks nobody: the leader never changes, so
// nobody else can have had anything decided. Its state has all that anybody was told, but for what
// was decided before its last start and is not decided again yet (mustSee).
func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if !r.leads() {
		env.SendAhead(from, kit.Redirect{Leader: r.leader()})
		return
	}
	if !r.Admission.Admitted() || r.decided < r.mustSee {
		return // the client asks again
	}
	var items []kit.ReadReply
	for _, q := range m.Queries {
		items = append(items, kit.ReadReply{ID: q.ID, Result: r.State.Read(q.Body)})
	}
	kit.SendReads(env, from, items)
}

// propose gives entries the next slots. Nobody sees them before they are on the leader's disk:
// after a crash it must not give the slots to others.
func (r *replica) propose(env *protocol.Env[smr.Message], entries []kit.Entry) {
	if len(entries) == 0 {
		return
	}
	m := write{First: r.last() + 1, Decided: r.decided, Entries: entries}
	r.write(env, entries)
	for _, member := range r.State.Members() {
		if member.ID != r.Cfg.ID {
			r.Admission.Send(env, member.ID, m)
		}
	}
	r.Admission.Send(env, r.Cfg.ID, written{r.last()})
}

// write appends entries to the log.
func (r *replica) write(env *protocol.Env[smr.Message], entries []kit.Entry) {
	env.Append(record{First: r.last() + 1, Entries: entries})
	r.log = append(r.log, entries...)
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	if !r.Admission.Votes() {
		return
	}
	switch m := letter.Msg.(type) {
	case write:
		if from == r.leader().ID && from != r.Cfg.ID {
			r.onWrite(env, from, m)
		}
	case written:
		if r.leads() {
			r.onWritten(env, from, m)
		}
	}
}

// onWrite writes down what is new in a message of the leader's, and learns what is decided. What is
// missing comes with the leader's next beat.
func (r *replica) onWrite(env *protocol.Env[smr.Message], from protocol.ID, m write) {
	if had := r.last() + 1 - m.First; m.First > 0 && m.First <= r.last()+1 && had < smr.Slot(len(m.Entries)) {
		r.write(env, m.Entries[had:])
	}
	r.decide(env, min(m.Decided, r.last()))
	r.Admission.Send(env, from, written{r.last()})
}

// onWritten counts: what all members have written is decided.
func (r *replica) onWritten(env *protocol.Env[smr.Message], from protocol.ID, m written) {
	r.written[from] = max(r.written[from], min(m.Last, r.last()))
	to := r.last()
	for _, member := range r.State.Members() {
		to = min(to, r.written[member.ID])
	}
	r.decide(env, to)
}

// decide executes all slots up to one.
func (r *replica) decide(env *protocol.Env[smr.Message], to smr.Slot) {
	for r.decided < to {
		r.decided++
		e := r.log[r.decided-1]
		reply := r.State.Apply(r.decided, e)
		if r.leads() {
			r.Desk.Applied(env, e, reply)
		}
	}
}

// onTimer is called for beats: the protocol has no other timers. It sends what others lack as far
// as the leader knows, and says what is decided.
func (r *replica) onTimer(env *protocol.Env[smr.Message], _ protocol.Timer) {
	env.After(r.Cfg.RoundTrip, beatTimer{})
	if !r.leads() || !r.Admission.Admitted() {
		return
	}
	r.Admission.Send(env, r.Cfg.ID, written{r.last()}) // after a crash it has to learn what its disk has
	for _, member := range r.State.Members() {
		if member.ID == r.Cfg.ID {
			continue
		}
		lacks := r.log[r.written[member.ID]:]
		r.Admission.Send(env, member.ID, write{
			First: r.written[member.ID] + 1, Decided: r.decided,
			Entries: lacks[:kit.FitEntries(lacks, min(len(lacks), r.Cfg.MaxBatch))],
		})
	}
}

func (r *replica) status(s *smr.Status) {
	s.Role, s.Leader, s.Ballot, s.LogSize = "follower", r.leader().ID, 1, len(r.log)
	switch {
	case !r.Admission.Admitted():
		s.Role = "blank"
	case r.leads():
		s.Role = "leader"
	}
}

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.decided != r.State.Applied() || r.decided > r.last() {
		return fmt.Errorf("writeall: decided %d, applied %d, last %d", r.decided, r.State.Applied(), r.last())
	}
	return r.State.Check()
}

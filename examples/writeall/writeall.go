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
	// Write is the entries of consecutive slots from First on, which the receiver is to write down.
	Write struct {
		First   smr.Slot
		Decided smr.Slot // slots up to it are decided
		Entries []kit.Entry
	}

	// Written answers it: all slots up to Last are on the sender's disk.
	Written struct{ Last smr.Slot }
)

// Record is what the log holds: the entries of consecutive slots from First on.
type Record struct {
	First   smr.Slot
	Entries []kit.Entry
}

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("writeall", 1, kit.Kind(64, writeFields), kit.Kind(65, writtenFields), kit.Kind(80, recordFields))
}

func writeFields(c *wirefmt.Coder, m *Write) {
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Decided)
	kit.EntriesFields(c, &m.Entries)
}

func writtenFields(c *wirefmt.Coder, m *Written) { wirefmt.Uint(c, &m.Last) }

func recordFields(c *wirefmt.Coder, m *Record) {
	wirefmt.Uint(c, &m.First)
	kit.EntriesFields(c, &m.Entries)
}

// Protocol returns the protocol as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "writeall",
		Doc:        "Write-all: the first member orders the commands, and all members write them down.",
		NewReplica: newReplica,
		NewClient:  kit.PlainClient,
		Codec:      Codec(),
	}
}

// A replica is one member.
type replica struct {
	cfg       smr.ReplicaConfig
	state     *kit.State     // the state machine, the sessions, the members
	admission *kit.Admission // no disk takes part under an ID that has had another one
	desk      *kit.Desk      // takes what clients ask for, and answers; the leader's
	broken    bool

	log     []kit.Entry // of slots from 1 on
	decided smr.Slot    // Invariant: decided is state.Applied() and at most len(log).
	written map[protocol.ID]smr.Slot
	mustSee smr.Slot // queries wait until the slots that may have been decided before this start are decided again
}

// tick is the timer of what is sent again.
type tick struct{}

func newReplica(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("writeall: %w", err)
	}
	if cfg.Join {
		return nil, fmt.Errorf("writeall: Join: nobody can be added to a group of this protocol")
	}
	r := &replica{cfg: cfg, state: kit.NewState(cfg.Machine, cfg.Members), written: map[protocol.ID]smr.Slot{}}
	r.admission = kit.NewAdmission(cfg, r.state)
	r.desk = kit.NewDesk(cfg, r.state)
	return r, nil
}

// leader returns who orders the commands.
func (r *replica) leader() smr.Member { return r.state.Members()[0] }

func (r *replica) leads() bool { return r.leader().ID == r.cfg.ID }

func (r *replica) last() smr.Slot { return smr.Slot(len(r.log)) }

// Start takes over what is on the disk.
func (r *replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	blank, err := r.load(env, log)
	if err != nil {
		r.broken = true
		env.Send(protocol.App, smr.Refused{Reason: fmt.Sprintf("the disk does not have what was written to it: %v", err)})
		return
	}
	r.mustSee = r.last()
	r.admission.Start(env, blank)
	r.admission.MembersChanged(env)
	env.After(0, tick{})
}

func (r *replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (blank bool, err error) {
	_, _, begun, err := r.state.Load(env, nil)
	if err != nil {
		return false, err
	}
	if !begun { // with whom the group begins stays so, whatever a later configuration says
		if err := r.state.SaveWhole(env, 0, nil); err != nil {
			return false, err
		}
	}
	for _, rec := range log {
		m, ok := rec.Msg.(Record)
		if !ok || m.First != r.last()+1 {
			return false, fmt.Errorf("record %d does not follow the %d slots before it", rec.Index, r.last())
		}
		r.log = append(r.log, m.Entries...)
	}
	return !begun && len(log) == 0, nil
}

// Receive takes a message.
func (r *replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if q, ok := msg.(smr.StatusQuery); ok && from == protocol.App {
		env.Send(protocol.App, r.status(q.ID))
		return
	}
	if r.broken || r.admission.Refused() || from == protocol.App {
		return
	}
	switch msg := msg.(type) {
	case kit.Hello:
		r.admission.Hello(env, from, msg)
	case kit.Welcome:
		r.admission.Welcome(env, from, msg)
	case kit.Request, kit.OpenRequest, kit.ChangeRequest, kit.ReadRequest:
		r.onClient(env, from, msg)
	case kit.Letter:
		if r.admission.Genuine(env, from, msg.Disk) && r.admission.Votes() {
			r.onReplica(env, from, msg.Msg)
		}
	}
	r.desk.Flush(env)
}

// Expire does what a timer is for.
func (r *replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.broken || r.admission.Refused() {
		return
	}
	switch t.(type) {
	case kit.AdmissionTimer:
		r.admission.Expire(env)
	case tick:
		r.onTick(env)
	}
	r.desk.Flush(env)
}

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
		} else if r.admission.Admitted() {
			r.propose(env, r.desk.Take(env, from, msg, nil))
		}
	}
}

// onRead answers queries by the leader's state: it has all that anybody was told.
func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if !r.leads() {
		env.SendAhead(from, kit.Redirect{Leader: r.leader()})
		return
	}
	if !r.admission.Admitted() || r.decided < r.mustSee {
		return // the client asks again
	}
	var items []kit.ReadReply
	for _, q := range m.Queries {
		items = append(items, kit.ReadReply{ID: q.ID, Result: r.state.Read(q.Body)})
	}
	kit.SendReads(env, from, items)
}

// propose gives entries the next slots. Nobody sees them before they are on the leader's disk:
// after a crash it must not give the slots to others.
func (r *replica) propose(env *protocol.Env[smr.Message], entries []kit.Entry) {
	if len(entries) == 0 {
		return
	}
	m := Write{First: r.last() + 1, Decided: r.decided, Entries: entries}
	r.write(env, entries)
	for _, member := range r.state.Members() {
		if member.ID != r.cfg.ID {
			r.admission.Send(env, member.ID, m)
		}
	}
	r.admission.Send(env, r.cfg.ID, Written{r.last()})
}

// write appends entries to the log.
func (r *replica) write(env *protocol.Env[smr.Message], entries []kit.Entry) {
	env.Append(Record{First: r.last() + 1, Entries: entries})
	r.log = append(r.log, entries...)
}

func (r *replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch m := msg.(type) {
	case Write:
		if from == r.leader().ID && from != r.cfg.ID {
			r.onWrite(env, from, m)
		}
	case Written:
		if r.leads() {
			r.onWritten(env, from, m)
		}
	}
}

// onWrite writes down what is new in a message of the leader's, and learns what is decided. What is
// missing comes with the leader's next tick.
func (r *replica) onWrite(env *protocol.Env[smr.Message], from protocol.ID, m Write) {
	if had := r.last() + 1 - m.First; m.First > 0 && m.First <= r.last()+1 && had < smr.Slot(len(m.Entries)) {
		r.write(env, m.Entries[had:])
	}
	r.decide(env, min(m.Decided, r.last()))
	r.admission.Send(env, from, Written{r.last()})
}

// onWritten counts: what all members have written is decided.
func (r *replica) onWritten(env *protocol.Env[smr.Message], from protocol.ID, m Written) {
	r.written[from] = max(r.written[from], min(m.Last, r.last()))
	to := r.last()
	for _, member := range r.state.Members() {
		to = min(to, r.written[member.ID])
	}
	r.decide(env, to)
}

// decide executes all slots up to one.
func (r *replica) decide(env *protocol.Env[smr.Message], to smr.Slot) {
	for r.decided < to {
		r.decided++
		e := r.log[r.decided-1]
		reply := r.state.Apply(r.decided, e)
		if r.leads() {
			r.desk.Applied(env, e, reply)
		}
	}
}

// onTick sends what others lack as far as the leader knows, and says what is decided.
func (r *replica) onTick(env *protocol.Env[smr.Message]) {
	env.After(r.cfg.RoundTrip, tick{})
	if !r.leads() || !r.admission.Admitted() {
		return
	}
	r.admission.Send(env, r.cfg.ID, Written{r.last()}) // after a crash it has to learn what its disk has
	for _, member := range r.state.Members() {
		if member.ID == r.cfg.ID {
			continue
		}
		lacks := r.log[r.written[member.ID]:]
		r.admission.Send(env, member.ID, Write{
			First: r.written[member.ID] + 1, Decided: r.decided,
			Entries: lacks[:kit.FitEntries(lacks, min(len(lacks), r.cfg.MaxBatch))],
		})
	}
}

func (r *replica) status(id smr.CallID) smr.Status {
	role := "follower"
	switch {
	case r.admission.Refused():
		role = "refused"
	case !r.admission.Admitted():
		role = "blank"
	case r.leads():
		role = "leader"
	}
	return smr.Status{
		ID: id, Replica: r.cfg.ID, Role: role, Leader: r.leader().ID, Ballot: 1, Committed: r.decided,
		Applied: r.state.Applied(),
		LogSize: len(r.log), Sessions: r.state.Sessions(), Members: r.state.Members(),
	}
}

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.decided != r.state.Applied() || r.decided > r.last() {
		return fmt.Errorf("writeall: decided %d, applied %d, last %d", r.decided, r.state.Applied(), r.last())
	}
	return r.state.Check()
}

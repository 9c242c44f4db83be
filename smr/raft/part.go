package raft

import (
	"io"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Part is a member of a Raft group within a node of another protocol, its owner: see DESIGN.md,
// "Embedded". The group agrees on entries of the owner's, and carries them out in the owner's key
// space. The owner hands it what is its: Start, messages that PartConfig.Message has made, timers
// that PartConfig.Timer has.
type Part[M any] struct {
	replica *replica
	hooks   Hooks[M]
	embed   protocol.Embedding[M, smr.Message]
	prefix  []byte
	telling bool
}

// PartConfig is what a part is made from.
type PartConfig[M any] struct {
	// Group says who the members are and how the group behaves. SnapshotEvery and LogBytes bound
	// the log: half of that is kept behind what is applied. SnapshotPartBytes is what a page of the
	// state has. Machine, and what is said of clients, is not used.
	Group   smr.ReplicaConfig
	Machine Machine
	Hooks   Hooks[M]

	Message func(smr.Message) M                 // puts a message or record of the part's into one of the owner's
	Timer   func(protocol.Timer) protocol.Timer // the same for timers
	Prefix  []byte                              // of the part's keys, those of the state among them
	// Patience is for how long a follower does without a word of the leader's, and a leader without a
	// quorum, if that is between 1.5 and 3 round trips: as long as it is in time, not in round trips,
	// no stall of a host is taken for a loss where round trips are short. 0 is 3 round trips. A leader
	// says something twice in each.
	Patience time.Duration
	// Truncate is told that the part needs none of its records below an index, which is one of the
	// owner's log. nil: the part alone writes records.
	Truncate func(env *protocol.Env[M], before uint64)
}

// A Machine is what a group agrees on. Its state is in the key space, and the same at all members
// that have applied the same entries. What it keeps in memory beside follows from the state.
type Machine interface {
	// Load comes at the start, and when the state was replaced by the leader's: what is in memory
	// is to be read anew.
	Load(state protocol.Keys)
	// Apply carries out an entry that was agreed on. What it writes depends on the state and the
	// entry alone. An entry comes once, in the order of the indices.
	Apply(state State, at Position, entry []byte)
}

// State is the key space of a Machine. What is given to Put and Delete must not be changed any
// more.
type State interface {
	protocol.Keys
	Put(key, value []byte)
	Delete(key []byte)
}

// A Position names an entry: there is one of an index and a term at most, wherever it is.
type Position struct{ Index, Term uint64 }

// Hooks tell the owner what happens, after the call of the part in which it does and in that order.
// They may call the part. Those that are nil tell nobody.
type Hooks[M any] struct {
	// Stored says that an entry is in the log here, of the term that the member is in: what is given
	// to Env.Send leaves when the entry is durable. A majority of members that have stored an
	// entry, each in the entry's own term, commits it. Replicas that wait to be added say it too,
	// and do not count.
	Stored func(env *protocol.Env[M], at Position, entry []byte)
	// Committed says that an entry was agreed on, and applied here.
	Committed func(env *protocol.Env[M], at Position, entry []byte)
	// Leads says that this member was elected. It may propose, but the state may lack entries that
	// were committed before.
	Leads func(env *protocol.Env[M], term uint64)
	// Current says that the state has all that was committed before the member was elected.
	Current func(env *protocol.Env[M], term uint64)
	// Confirmed says that the member led after a question of Confirm's came, and that the state has
	// all that was committed before it came.
	Confirmed func(env *protocol.Env[M], question uint64)
	// Follows says that the member leads no more. Questions that were not confirmed never are.
	Follows func(env *protocol.Env[M])
	// Said takes what a replica of the family says to its application: smr.Status, smr.Refused,
	// smr.MembersChanged, smr.HandingOver. It comes before what else the same call tells. After a
	// call with smr.Refused nothing more is told, also if the member led.
	Said func(env *protocol.Env[M], msg smr.Message)
}

// NewPart returns a part. The error names the field of the configuration that is wrong.
func NewPart[M any](cfg PartConfig[M]) (*Part[M], error) {
	cfg.Group.Machine = nothing{}
	r, err := newReplica(cfg.Group)
	if err != nil {
		return nil, err
	}
	r.embed(cfg.Machine)
	r.patient = cfg.Patience
	p := &Part[M]{replica: r, hooks: cfg.Hooks, prefix: slices.Clone(cfg.Prefix)}
	p.embed = protocol.Embedding[M, smr.Message]{Message: cfg.Message, Timer: cfg.Timer, Truncate: cfg.Truncate,
		Prefix: p.prefix, App: cfg.Hooks.Said}
	if cfg.Truncate == nil {
		p.embed.Truncate = func(env *protocol.Env[M], before uint64) { env.Truncate(before) }
	}
	return p, nil
}

// Start takes over what is on the disk: the part's records, and its keys.
func (p *Part[M]) Start(env *protocol.Env[M], log []protocol.Record[smr.Message]) {
	p.call(env, func(in *protocol.Env[smr.Message]) { p.replica.Start(in, log) })
}

// Receive takes a message of another member's, or what an application asks a replica of the family:
// smr.StatusQuery, smr.HandOver.
func (p *Part[M]) Receive(env *protocol.Env[M], from protocol.ID, msg smr.Message) {
	p.call(env, func(in *protocol.Env[smr.Message]) { p.replica.Receive(in, from, msg) })
}

// Expire does what one of the part's timers is for.
func (p *Part[M]) Expire(env *protocol.Env[M], t protocol.Timer) {
	p.call(env, func(in *protocol.Env[smr.Message]) { p.replica.Expire(in, t) })
}

// Propose has the group agree on an entry, and returns where that is to be; ok is false if this
// member does not lead, hands over, or has too much under way. If it is not committed there, it is
// nowhere.
func (p *Part[M]) Propose(env *protocol.Env[M], entry []byte) (at Position, ok bool) {
	p.call(env, func(in *protocol.Env[smr.Message]) { at, ok = p.replica.part.propose(in, entry) })
	return at, ok
}

// Change has the group change its members, one at a time, and returns why it cannot now, "" if it
// is under way. One that is to be added has been started with Join set, and is brought up to date
// first: the owner asks again.
func (p *Part[M]) Change(env *protocol.Env[M], c smr.Change) (reason string) {
	p.call(env, func(in *protocol.Env[smr.Message]) { reason = p.replica.part.proposeChange(in, c) })
	return reason
}

// Confirm has a majority confirm that this member still leads: see Hooks.Confirmed, which may come
// before Confirm returns. It names the owner's question. One round of heartbeats confirms all that
// came before it. ok is false if the member does not lead.
func (p *Part[M]) Confirm(env *protocol.Env[M], question uint64) (ok bool) {
	p.call(env, func(in *protocol.Env[smr.Message]) { ok = p.replica.part.confirm(in, question) })
	return ok
}

// call calls the replica, and tells what has happened.
func (p *Part[M]) call(env *protocol.Env[M], call func(*protocol.Env[smr.Message])) {
	p.embed.Call(env, call)
	if p.telling {
		return // the call that tells goes on
	}
	p.telling = true
	events := &p.replica.part.events
	for i := 0; i < len(*events); i++ {
		p.tell(env, (*events)[i])
	}
	clear(*events)
	*events, p.telling = (*events)[:0], false
}

func (p *Part[M]) tell(env *protocol.Env[M], e event) {
	ofEntry := func(hook func(*protocol.Env[M], Position, []byte)) {
		if hook != nil {
			hook(env, e.at, e.entry)
		}
	}
	ofTerm := func(hook func(*protocol.Env[M], uint64)) {
		if hook != nil {
			hook(env, e.at.Term)
		}
	}
	switch e.kind {
	case wasStored:
		ofEntry(p.hooks.Stored)
	case wasCommitted:
		ofEntry(p.hooks.Committed)
	case leads:
		ofTerm(p.hooks.Leads)
	case isCurrent:
		ofTerm(p.hooks.Current)
	case wasConfirmed:
		if p.hooks.Confirmed != nil {
			p.hooks.Confirmed(env, e.question)
		}
	case follows:
		if p.hooks.Follows != nil {
			p.hooks.Follows(env)
		}
	}
}

// State returns the state as it is. keys are the owner's key space: its Env, in a call.
func (p *Part[M]) State(keys protocol.Keys) protocol.Keys {
	return protocol.Prefixed(keys, slices.Concat(p.prefix, areaPrefix(p.replica.part.head.area)))
}

// Leads reports whether the member leads, and in which term. Another one may lead by now in a later
// one.
func (p *Part[M]) Leads() (term uint64, ok bool) {
	r := p.replica
	if r.Over() || !r.led {
		return 0, false
	}
	return r.core.term(), true
}

// Current reports whether the member leads, and has applied all that was committed before it did.
func (p *Part[M]) Current() bool { return !p.replica.Over() && p.replica.led && p.replica.part.current }

// Leader returns the member that leads, as far as is known; its ID is 0 if that is nobody.
func (p *Part[M]) Leader() smr.Member {
	if p.replica.Over() || p.replica.core.node == nil {
		return smr.Member{}
	}
	return p.replica.leader()
}

// Members returns the members, as of what is applied here. settled says that the log here has no
// change of them beyond that: then a majority of them commits the entries at its end. The next
// change may be in others' logs.
func (p *Part[M]) Members() (ids []protocol.ID, settled bool) {
	r := p.replica
	return r.State.MemberIDs(), !r.changing && r.core.log.change <= r.part.head.applied.Index
}

// Standing reports whether the replica is a member, as of what is applied here, or was one and is
// not any more.
func (p *Part[M]) Standing() (member, removed bool) {
	id := p.replica.Cfg.ID
	_, member = p.replica.State.Member(id)
	return member, p.replica.State.Removed(id)
}

// ArrivedBytes returns how much of copies of a leader's state has arrived since the replica began.
func (p *Part[M]) ArrivedBytes() uint64 { return p.replica.part.arrivedBytes }

// Applied returns the entry that was applied last. It may be one of the group's own, which the
// owner does not see.
func (p *Part[M]) Applied() Position { return p.replica.part.head.applied }

// TermOf returns the term of the entry that has an index in the log; ok is false if there is none,
// or none any more.
func (p *Part[M]) TermOf(index uint64) (term uint64, ok bool) {
	term, err := p.replica.core.log.Term(index)
	return term, err == nil
}

// Check is that of protocol.Checked.
func (p *Part[M]) Check() error { return p.replica.Check() }

// String describes the member, for people.
func (p *Part[M]) String() string { return p.replica.String() }

// nothing is the state machine of a replica whose state is elsewhere.
type nothing struct{}

func (nothing) Apply([]byte) []byte { return nil }

func (nothing) Read([]byte) []byte { return nil }

func (nothing) Snapshot(io.Writer) error { return nil }

func (nothing) Restore(io.Reader) error { return nil }

// Heard returns when the member, which leads, heard of another one last, or was elected; ok is
// false if it never did.
func (p *Part[M]) Heard(id protocol.ID) (at time.Duration, ok bool) {
	at, ok = p.replica.heard[id]
	return at, ok
}

// LastLed returns which other member led when this one last heard of one that did, and when that
// was; 0 is nobody.
func (p *Part[M]) LastLed() (leader protocol.ID, at time.Duration) {
	return p.replica.leaderWas, p.replica.leaderAt
}

// Term returns the term that the member is in. It may have heard of that from a candidate only.
func (p *Part[M]) Term() uint64 {
	if p.replica.Over() || p.replica.core.node == nil {
		return 0
	}
	return p.replica.core.term()
}

// StateIn is State of what is on the owner's disk, for tests and tools.
func (p *Part[M]) StateIn(disk protocol.Keys) protocol.Keys {
	return protocol.Prefixed(disk, slices.Concat(p.prefix, areaPrefix(p.replica.part.head.area)))
}

package raft

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// part is what a replica has that is embedded in another node, in place of a state machine with
// sessions: see Part.
type part struct {
	*replica
	machine  Machine
	head     head
	members  []byte // as on disk
	arriving arriving
	// arrivedBytes is what pages of copies had, since the replica began.
	arrivedBytes uint64
	end          *pageEnd                  // of the copy that is being given to the library
	copies       map[protocol.ID]*outgoing // to others
	// weightBytes is of the entries of the log that are applied.
	weightBytes int
	current     bool // of a leader: all before its election is applied
	rounds      rounds
	events      []event
}

// A part's keys, beside those that package kit has there.
const (
	headKey     = "part/head"
	membersKey  = "part/members"
	arrivingKey = "part/arriving"
	statePrefix = "part/state/" // and the area
)

// head is what a part writes with what it applies.
type head struct {
	applied Position
	cut     Position // the entry before the first of the log
	area    uint64   // that the state is in; 0: there is none
}

var headLayout = wirefmt.NewLayout("raft: a part's head", func(c *wirefmt.Coder, h *head) {
	positionFields(c, &h.applied)
	positionFields(c, &h.cut)
	wirefmt.Uint(c, &h.area)
})

func positionFields(c *wirefmt.Coder, p *Position) {
	wirefmt.Uint(c, &p.Index)
	wirefmt.Uint(c, &p.Term)
}

// An event is what is told to the owner.
type event struct {
	kind     eventKind
	at       Position
	entry    []byte
	question uint64 // of Confirm
}

type eventKind uint8

const (
	wasStored eventKind = iota
	wasCommitted
	leads
	isCurrent
	wasConfirmed
	follows
)

// embed makes a replica one whose state is in the key space.
func (r *replica) embed(machine Machine) {
	p := &part{replica: r, machine: machine, copies: map[protocol.ID]*outgoing{}}
	r.part = p
	r.core.apply, r.core.send, r.core.restore, r.core.stored = p.apply, p.sendState, p.install, p.stored
	r.core.read = p.confirmed
	r.core.log.now = p.meta
}

// areaPrefix returns what the keys of an area begin with.
func areaPrefix(area uint64) []byte { return binary.BigEndian.AppendUint64([]byte(statePrefix), area) }

// areaOf is the opposite of areaPrefix.
func areaOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(statePrefix):]) }

// area is a state in the key space.
type area struct {
	protocol.Keys
	env    *protocol.Env[smr.Message]
	prefix []byte
	// changes is called with each key that is written; it may be nil.
	changes func(key []byte)
}

func (p *part) area(env *protocol.Env[smr.Message], number uint64, changes func([]byte)) area {
	prefix := areaPrefix(number)
	return area{protocol.Prefixed(env, prefix), env, prefix, changes}
}

func (p *part) state(env *protocol.Env[smr.Message]) area {
	return p.area(env, p.head.area, p.changed)
}

func (a area) Put(key, value []byte) {
	a.env.Put(slices.Concat(a.prefix, key), value)
	if a.changes != nil {
		a.changes(key)
	}
}

func (a area) Delete(key []byte) {
	a.env.Delete(slices.Concat(a.prefix, key))
	if a.changes != nil {
		a.changes(key)
	}
}

// recover takes over what the disk holds, and returns the index up to which the state has
// everything, and whether that is nothing.
func (p *part) recover(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (applied uint64, blank bool, err error) {
	st := p.core.log
	b, ok := env.Get([]byte(headKey))
	switch {
	case ok:
		if p.head, err = headLayout.Decode(b); err != nil {
			return 0, false, err
		}
		p.members, _ = env.Get([]byte(membersKey))
		p.members = slices.Clone(p.members)
		if err := p.State.DecodeMembers(smr.Slot(p.head.applied.Index), p.members); err != nil {
			return 0, false, err
		}
	case !p.Cfg.Join && len(log) > 0:
		return 0, false, fmt.Errorf("raft: the disk has a log of %d records and no state: a part of it is lost, "+
			"or an earlier version of the program has written it", len(log))
	case !p.Cfg.Join:
		// The group itself is an entry that all members have.
		p.State.Skip(1)
		p.head = head{applied: Position{1, 1}, cut: Position{1, 1}, area: 1}
		p.writeHead(env)
		p.writeMembers(env)
		st.hard.term = 1
	}
	st.prior = position{p.head.cut.Index, p.head.cut.Term}
	st.voters = p.voters()
	if err := p.core.replay(log, p.head.applied.Index); err != nil {
		return 0, false, err
	}
	if st.last() < p.head.applied.Index {
		return 0, false, fmt.Errorf("raft: the log ends at entry %d, and entry %d is applied: a part of it is lost",
			st.last(), p.head.applied.Index)
	}
	for _, e := range st.entries[:p.head.applied.Index-p.head.cut.Index] {
		p.weightBytes += entryBytes(e)
	}
	if err := p.recoverArriving(env); err != nil {
		return 0, false, err
	}
	p.machine.Load(p.state(env))
	p.sweep(env)
	return p.head.applied.Index, len(log) == 0 && !ok, nil
}

func (p *part) writeHead(env *protocol.Env[smr.Message]) {
	env.Put([]byte(headKey), headLayout.Encode(p.head))
}

func (p *part) writeMembers(env *protocol.Env[smr.Message]) {
	p.members = p.State.EncodeMembers()
	env.Put([]byte(membersKey), p.members)
}

// meta says what a state would be of that is sent now.
func (p *part) meta() *raftpb.SnapshotMetadata {
	return metaOf(p.head.applied, p.voters())
}

func metaOf(at Position, voters []uint64) *raftpb.SnapshotMetadata {
	return &raftpb.SnapshotMetadata{Index: new(at.Index), Term: new(at.Term),
		ConfState: &raftpb.ConfState{Voters: voters}}
}

// entryRoom is about what an entry takes beside its data.
const entryRoom = 64

func entryBytes(e *raftpb.Entry) int { return entryRoom + len(e.GetData()) }

// stored takes note that entries are in the log.
func (p *part) stored(entries []*raftpb.Entry) {
	for _, e := range entries {
		// A majority that has an entry of an earlier term does not commit it.
		if e.GetTerm() != p.core.hard.term || e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
			continue
		}
		if entry, err := decodeEntry(e.GetData()); err == nil {
			at := Position{e.GetIndex(), e.GetTerm()}
			p.events = append(p.events, event{kind: wasStored, at: at, entry: entry.Command})
		}
	}
}

// apply carries out what was committed.
func (p *part) apply(env *protocol.Env[smr.Message], entries []*raftpb.Entry) {
	for _, e := range entries {
		at := Position{e.GetIndex(), e.GetTerm()}
		switch {
		case e.GetType() == raftpb.EntryConfChange:
			p.applyChange(env, e)
		case len(e.GetData()) > 0:
			entry := p.decode(env, e.GetData())
			if p.Over() {
				break
			}
			p.machine.Apply(p.state(env), at, entry.Command)
			p.events = append(p.events, event{kind: wasCommitted, at: at, entry: entry.Command})
		}
		if p.Over() {
			break
		}
		p.State.Skip(smr.Slot(at.Index))
		p.head.applied = at
		p.weightBytes += entryBytes(e)
	}
	p.writeHead(env) // with what was applied, or neither is durable
	p.dropArriving(env)
}

// change carries out a change of the members.
func (p *part) change(env *protocol.Env[smr.Message], index uint64, e kit.Entry) {
	if e.Kind == kit.ChangeMembers && e.Members != nil {
		p.State.ChangeMembers(smr.Slot(index), *e.Members)
		p.writeMembers(env)
	}
}

func (p *part) propose(env *protocol.Env[smr.Message], command []byte) (at Position, ok bool) {
	if p.Over() || !p.led || p.handsOver() {
		return Position{}, false
	}
	p.Resting.Work(env)
	if !p.core.propose([]*raftpb.Entry{{Data: entryLayout.Encode(kit.Entry{Kind: kit.Command, Command: command})}}) {
		return Position{}, false
	}
	p.core.flush(env)
	at = Position{p.core.last, p.core.term()}
	p.finish(env)
	return at, true
}

func (p *part) proposeChange(env *protocol.Env[smr.Message], c smr.Change) (reason string) {
	switch {
	case p.Over() || !p.led || p.handsOver():
		return fmt.Sprintf("replica %d does not lead", p.Cfg.ID)
	case p.core.applied < p.ledSince:
		return "the leader is new, and does not know yet what was decided before"
	case p.changing:
		return "another change of the members is on its way"
	}
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	p.Resting.Work(env)
	p.Desk.Meet(env, c)
	if reason := p.Desk.Behind(env, c, p.upToDate); reason != "" {
		return reason
	}
	e := kit.Entry{Kind: kit.ChangeMembers, Members: &kit.MemberChange{Change: c}}
	if c.Remove == 0 {
		disk, there := p.Admission.Joiner(c.Add.ID)
		if _, member := p.State.Member(c.Add.ID); !there && !member {
			return fmt.Sprintf("replica %d has not said that it is there: start it with Join set", c.Add.ID)
		}
		e.Members.Incarnation = disk
	}
	if !p.core.propose([]*raftpb.Entry{changeEntry(e)}) {
		return "too much is on its way"
	}
	p.changing = true
	p.core.flush(env)
	p.finish(env)
	return ""
}

// leads takes note that the replica begins to lead, or ceases to.
func (p *part) leads(leader bool) {
	p.current, p.rounds = false, rounds{}
	if leader {
		p.events = append(p.events, event{kind: leads, at: Position{Term: p.core.term()}})
	} else {
		p.events = append(p.events, event{kind: follows})
	}
}

// tend comes at the end of each call.
func (p *part) tend(env *protocol.Env[smr.Message]) {
	if p.led && !p.current && p.core.applied >= p.ledSince {
		p.current = true
		p.events = append(p.events, event{kind: isCurrent, at: Position{Term: p.core.term()}})
	}
	p.maybeConfirm(env)
	n := p.head.applied.Index - p.head.cut.Index
	if n > uint64(p.Cfg.SnapshotEvery) || p.weightBytes > p.Cfg.LogBytes {
		p.cutLog(env)
	}
}

// cutLog forgets applied entries, but for half of those that may be kept, for members that lag a
// little, and those behind a copy of the state that is under way.
func (p *part) cutLog(env *protocol.Env[smr.Message]) {
	st := p.core.log
	upTo, kept := p.head.applied.Index, 0
	for upTo > st.prior.index && p.head.applied.Index-upTo < uint64(p.Cfg.SnapshotEvery)/2 {
		size := entryBytes(st.entries[upTo-st.prior.index-1])
		if kept+size > p.Cfg.LogBytes/2 {
			break
		}
		kept += size
		upTo--
	}
	if p.weightBytes <= 2*p.Cfg.LogBytes && p.head.applied.Index-p.head.cut.Index <= 2*uint64(p.Cfg.SnapshotEvery) {
		for _, o := range p.copies { //pure:ok the least of all
			if o.end {
				upTo = min(upTo, o.at.Index)
			}
		}
	}
	if upTo <= st.prior.index {
		return
	}
	for _, e := range st.entries[:upTo-st.prior.index] {
		p.weightBytes -= entryBytes(e)
	}
	first := env.Append(record{hard: p.core.hard}) // the newest state stays on record
	if rec, ok := st.compact(upTo); ok {
		first = min(first, rec)
	}
	env.Truncate(first)
	p.head.cut = Position{st.prior.index, st.prior.term}
	p.writeHead(env)
}

// sends reports whether a state is on its way to another replica.
func (r *replica) sends(id protocol.ID) bool {
	return r.Transfers.Of(id) != nil || r.part != nil && r.part.copies[id] != nil
}

// transfers returns to how many replicas states are on their way.
func (r *replica) transfers() int {
	if r.part != nil {
		return len(r.part.copies)
	}
	return r.Transfers.Len()
}

func (r *replica) dropTransfer(id protocol.ID) {
	r.Transfers.Drop(id)
	if r.part != nil {
		delete(r.part.copies, id)
	}
}

func (r *replica) clearTransfers() {
	r.Transfers.Clear()
	if r.part != nil {
		clear(r.part.copies)
	}
}

// continueSending goes on with the states that are on their way to others.
func (r *replica) continueSending(env *protocol.Env[smr.Message]) {
	if r.part != nil {
		r.part.continueCopies(env)
	} else {
		r.continueTransfers(env)
	}
}

package raft

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// electionTicks is how many heartbeats etcd's raft takes for an election timeout. It only matters
// to a transfer of leadership: we tick leaders only, and call elections ourselves.
const electionTicks = 10

// core is etcd's raft behind the contract. Its storage threads are the runner: what it wants
// written is a record of the log, and what may only leave after that is given to Env.Send, its own
// acknowledgements among it.
type core struct {
	id        protocol.ID
	node      *raft.RawNode
	log       *storage
	admission *kit.Admission // whose disk goes with each message

	hard      hardState // as last recorded
	last      uint64    // index of the last entry. Invariant: log or unstable part end there.
	applied   uint64    // index of the last entry given to apply
	beatTicks uint64    // the highest context of our heartbeats

	// What the replica does with the core's results.
	apply func(env *protocol.Env[smr.Message], entries []*raftpb.Entry)
	read  func(env *protocol.Env[smr.Message], states []raft.ReadState)
	// whether the replica sends the message itself, in its own way
	send func(env *protocol.Env[smr.Message], m *raftpb.Message) bool
	// false: it cannot be, and the replica has halted
	restore func(env *protocol.Env[smr.Message], s *raftpb.Snapshot) bool
	// entries are in the log, of any term; it may be nil
	stored func(entries []*raftpb.Entry)
}

// hardState is what a replica must not forget, beside the entries.
type hardState struct{ term, vote, commit uint64 }

// replay takes over the records of a disk, on which all up to an index is known to be committed.
func (c *core) replay(records []protocol.Record[smr.Message], committed uint64) error {
	st := c.log
	for _, rec := range records {
		m, ok := rec.Msg.(record)
		if !ok {
			return fmt.Errorf("raft: record %d of the log is a %T", rec.Index, rec.Msg)
		}
		if err := st.replay(rec.Index, m); err != nil {
			return err
		}
	}
	if st.hard.term < st.prior.term {
		st.hard = hardState{term: st.prior.term}
	}
	st.hard.commit = min(max(st.hard.commit, committed), st.last())
	c.hard, c.last = st.hard, st.last()
	return nil
}

// start makes the library's node of what the storage holds.
func (c *core) start(applied, maxUnderwayBytes uint64) error {
	node, err := raft.NewRawNode(&raft.Config{
		ID:            uint64(c.id),
		ElectionTick:  electionTicks,
		HeartbeatTick: 1,
		Storage:       c.log,
		Applied:       applied,
		// A write is a record, its acknowledgement a message to oneself.
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             kit.MessageBytes,
		MaxCommittedSizePerReady:  64 << 20,
		MaxUncommittedEntriesSize: 256 << 20,
		MaxInflightMsgs:           256,
		MaxInflightBytes:          max(maxUnderwayBytes, kit.MessageBytes),
		PreVote:                   true,
		// A quorum is checked, and votes are refused while there is a leader, by us: the library's
		// own lease needs its election clock.
		CheckQuorum:               false,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    silent{},
	})
	if err != nil {
		return fmt.Errorf("raft: start replica %d: %w", c.id, err)
	}
	c.node, c.applied = node, applied
	return nil
}

// step gives the library a message that accept has let through.
func (c *core) step(env *protocol.Env[smr.Message], m *raftpb.Message) {
	// An error says that the message is of no use now: from a stranger, a proposal without a
	// leader.
	_ = c.node.Step(m)
	c.flush(env)
}

// flush carries out what the library wants done.
func (c *core) flush(env *protocol.Env[smr.Message]) {
	for c.node.HasReady() {
		rd := c.node.Ready()
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				c.persist(env, m)
			case raft.LocalApplyThread:
				c.applyEntries(env, m)
			default:
				if m.GetType() == raftpb.MsgHeartbeat {
					c.noteContext(m.GetContext())
				}
				switch {
				case c.send(env, m):
				case m.GetType() == raftpb.MsgVote:
					// A candidate that others elect before its own vote is on disk may forget the
					// term in a crash, and lead in it a second time, with other entries. The
					// library lets it ask ahead; we do not.
					c.admission.Send(env, protocol.ID(m.GetTo()), rpc{m})
				default:
					c.admission.SendAhead(env, protocol.ID(m.GetTo()), rpc{m})
				}
			}
		}
		if len(rd.ReadStates) > 0 {
			c.read(env, rd.ReadStates)
		}
	}
}

// persist records what the library wants written, and sends what waits for it.
func (c *core) persist(env *protocol.Env[smr.Message], m *raftpb.Message) {
	if s := m.GetSnapshot(); s != nil {
		c.log.install(s)
		if !c.restore(env, s) {
			return // nobody is told that the snapshot is there
		}
		c.applied = s.GetMetadata().GetIndex()
		c.last = c.applied
		c.hard.commit = max(c.hard.commit, c.applied)
	}
	if n := len(m.GetEntries()); n > 0 {
		c.log.append(m.GetEntries())
		c.last = m.GetEntries()[n-1].GetIndex()
	}
	next := c.hard
	if m.Term != nil { // else the message has no new hard state
		next = hardState{m.GetTerm(), m.GetVote(), max(m.GetCommit(), c.hard.commit)}
	}
	// A commit index alone need not survive: it is found again.
	if len(m.GetEntries()) > 0 || m.GetSnapshot() != nil || next.term != c.hard.term || next.vote != c.hard.vote {
		c.log.noteRecord(env.Append(record{hard: next, entries: m.GetEntries()}))
	}
	c.hard = next
	if c.stored != nil {
		c.stored(m.GetEntries())
	}
	for _, r := range m.GetResponses() {
		c.admission.Send(env, protocol.ID(r.GetTo()), rpc{r})
	}
}

// applyEntries has committed entries executed, and tells the library.
func (c *core) applyEntries(env *protocol.Env[smr.Message], m *raftpb.Message) {
	c.apply(env, m.GetEntries())
	c.applied = m.GetEntries()[len(m.GetEntries())-1].GetIndex()
	for _, r := range m.GetResponses() {
		_ = c.node.Step(r) // to itself: the entries are applied
	}
}

// propose appends entries as a leader. It reports false if they cannot be: this is no leader, or
// too much is on its way.
func (c *core) propose(entries []*raftpb.Entry) bool {
	err := c.node.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: new(uint64(c.id)), Entries: entries})
	return err == nil
}

// retire makes a leader a follower of nobody: it has not heard from a quorum, so others may have a
// leader of a higher term. It is as if a peer had said so. Going to a higher term is always safe.
func (c *core) retire(env *protocol.Env[smr.Message], peer protocol.ID) {
	term := c.term() + 1
	c.step(env, &raftpb.Message{
		Type: raftpb.MsgHeartbeatResp.Enum(), From: new(uint64(peer)), To: new(uint64(c.id)), Term: &term,
	})
}

func (c *core) campaign(env *protocol.Env[smr.Message]) {
	_ = c.node.Campaign() // fails if this is no member: then there is nothing to do
	c.flush(env)
}

// change has the library know other members, or learners.
func (c *core) change(kind raftpb.ConfChangeType, id protocol.ID) {
	c.node.ApplyConfChange(&raftpb.ConfChange{Type: kind.Enum(), NodeId: new(uint64(id))})
}

func (c *core) term() uint64 { return c.node.BasicStatus().HardState.GetTerm() }

func (c *core) committed() uint64 { return c.node.BasicStatus().HardState.GetCommit() }

// role returns what the replica is, in the vocabulary of smr.Status.
func (c *core) role() string {
	switch c.node.BasicStatus().RaftState {
	case raft.StateLeader:
		return "leader"
	case raft.StateCandidate, raft.StatePreCandidate:
		return "candidate"
	}
	return "follower"
}

// check returns which invariant is broken, or nil.
func (c *core) check(state uint64) error {
	st, n := c.log, uint64(len(c.log.entries))
	for i, e := range st.entries {
		if e.GetIndex() != st.prior.index+1+uint64(i) {
			return fmt.Errorf("raft: entry %d of the storage has the index %d, after %d", i, e.GetIndex(), st.prior.index)
		}
	}
	switch {
	case c.applied > c.committed():
		return fmt.Errorf("raft: applied %d, committed %d", c.applied, c.committed())
	case state != max(c.applied, st.prior.index) && state != c.applied:
		return fmt.Errorf("raft: the state has applied %d, the library %d", state, c.applied)
	case uint64(len(st.records)) != n:
		return fmt.Errorf("raft: %d entries, %d records", n, len(st.records))
	}
	return nil
}

func (c *core) leads() bool { return c.node.BasicStatus().RaftState == raft.StateLeader }

// stands reports whether it asks, or has asked, for votes in vain so far.
func (c *core) stands() bool { return c.role() == "candidate" }

func (c *core) leader() protocol.ID { return protocol.ID(c.node.BasicStatus().Lead) }

// silent drops the library's log. What it panics about is a broken invariant.
type silent struct{}

func (silent) Debug(...any)            {}
func (silent) Debugf(string, ...any)   {}
func (silent) Error(...any)            {}
func (silent) Errorf(string, ...any)   {}
func (silent) Info(...any)             {}
func (silent) Infof(string, ...any)    {}
func (silent) Warning(...any)          {}
func (silent) Warningf(string, ...any) {}
func (silent) Fatal(v ...any)          { panic("raft: " + fmt.Sprint(v...)) }
func (silent) Fatalf(f string, v ...any) {
	panic("raft: " + fmt.Sprintf(f, v...))
}
func (silent) Panic(v ...any) { panic("raft: " + fmt.Sprint(v...)) }
func (silent) Panicf(f string, v ...any) {
	panic("raft: " + fmt.Sprintf(f, v...))
}

package kit

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Reply is what applying an entry says to the client that asked for it.
type Reply struct {
	Outcome smr.Outcome
	Slot    smr.Slot // where the command was executed first, if Committed
	Result  []byte   // of the state machine; not to be changed
	Reason  string   // if not Committed
	Gone    bool     // the session is not open any more: the client opens another
	Session SessionID
	Window  Seq // Session and Window are of OpenSession
}

// State is all that is the same on replicas that have applied the same entries: the state machine,
// the sessions, the members. A protocol applies what was decided, in the order of the slots; State
// sees to it that each command is executed once.
type State struct {
	machine  smr.StateMachine
	applied  smr.Slot
	sessions *sessions
	members  members
	saver

	hooks          ApplyHooks
	maxAnswerBytes int // of the results that sessions keep; 0 is any number
}

// ApplyHooks are what a protocol does around each entry that is applied, the first time and again
// when a restart replays it. Any of them may be nil.
type ApplyHooks struct {
	// Loaded takes what the protocol had put in front of the snapshot on disk. It comes after the
	// snapshot was restored, and before Load replays the entries behind it. What Load returns is as
	// of the moment after that.
	Loaded func(front []byte) error
	Before func(e Entry)
	After  func(r Reply)
}

// Around sets the hooks.
func (s *State) Around(h ApplyHooks) { s.hooks = h }

// NewState returns the state of a group before its first entry. The members need not be in order. A
// replica that joins gives nil: it cannot know with whom the group began, so its state must come
// from a snapshot.
func NewState(machine smr.StateMachine, group []smr.Member) *State {
	s := &State{machine: machine, sessions: newSessions()}
	for _, m := range group {
		s.members.now = append(s.members.now, identified{Member: m})
	}
	slices.SortFunc(s.members.now, func(a, b identified) int { return byID(a, b.ID) })
	return s
}

// Apply applies an entry of a slot above all slots before, and returns the answer for the client.
// Slots may be left out.
func (s *State) Apply(slot smr.Slot, e Entry) Reply {
	if slot <= s.applied {
		panic(fmt.Sprintf("smr: apply slot %d after slot %d", slot, s.applied))
	}
	s.applied = slot
	s.weightBytes += EntryBytes(e)
	s.passedBytes += EntryBytes(e)
	if s.keeps && e.Kind != NoOp {
		s.kept.Add(appliedEntry{slot, e})
	}
	if s.hooks.Before != nil {
		s.hooks.Before(e)
	}
	r := s.execute(slot, e)
	if s.hooks.After != nil {
		s.hooks.After(r)
	}
	return r
}

// execute does what an entry asks for, unless that was done before.
func (s *State) execute(slot smr.Slot, e Entry) Reply {
	switch e.Kind {
	case Command, ChangeMembers:
		from := s.sessions.byID[e.Session]
		s.sessions.use(from, e)
		if r, ok := from.seen(e); ok {
			return r
		}
		var r Reply
		if e.Kind == Command {
			r = Reply{Outcome: smr.Committed, Slot: slot, Result: s.machine.Apply(e.Command)}
		} else {
			r = s.members.change(slot, *e.Members)
		}
		s.sessions.keep(from, e.Seq, r, s.maxAnswerBytes)
		return r
	case OpenSession:
		return s.sessions.open(slot, e)
	}
	return Reply{Outcome: smr.Committed, Slot: slot}
}

// Fullness returns how much of what a log may weigh, ReplicaConfig.LogBytes, was applied since the
// last snapshot: 1 is all of it. A log may weigh as much as the snapshot, if that is more and of
// all of the state, since writing it costs as much as the state is large.
func (s *State) Fullness(logBytes int) float64 {
	if _, ok := s.machine.(smr.Differ); ok {
		return float64(s.weightBytes) / float64(logBytes)
	}
	return float64(s.weightBytes) / float64(max(logBytes, s.savedBytes))
}

// Skip says that nothing is to be applied up to a slot.
func (s *State) Skip(to smr.Slot) { s.applied = max(s.applied, to) }

// Seen answers an entry of a client that must not be proposed again: one that was executed, or
// whose session is not there.
func (s *State) Seen(e Entry) (Reply, bool) {
	if e.Kind == OpenSession {
		return s.sessions.opened(e)
	}
	return s.sessions.byID[e.Session].seen(e)
}

// Read answers a query from the state as it is.
func (s *State) Read(query []byte) []byte { return s.machine.Read(query) }

// Applied returns the newest slot that was applied.
func (s *State) Applied() smr.Slot { return s.applied }

// Sessions returns the number of open sessions.
func (s *State) Sessions() int { return len(s.sessions.byID) }

// Members returns the members in order of their IDs.
func (s *State) Members() []smr.Member {
	out := make([]smr.Member, len(s.members.now))
	for i, m := range s.members.now {
		out[i] = m.Member
	}
	return out
}

// MemberIDs returns the members' IDs, in order.
func (s *State) MemberIDs() []protocol.ID {
	ids := make([]protocol.ID, 0, len(s.members.now))
	for _, m := range s.members.now {
		ids = append(ids, m.ID)
	}
	return ids
}

// Member reports whether a replica is a member, and returns the disk that the log bound it to, 0
// for a member from the beginning.
func (s *State) Member(id protocol.ID) (Incarnation, bool) {
	i, ok := slices.BinarySearchFunc(s.members.now, id, byID)
	if !ok {
		return 0, false
	}
	return s.members.now[i].incarnation, true
}

// Removed reports whether a replica was a member and is not any more.
func (s *State) Removed(id protocol.ID) bool {
	_, ok := slices.BinarySearch(s.members.removed, id)
	return ok
}

// What a state's bytes begin with.
const (
	snapshotVersion = 1 // all of a state
	chainVersion    = 2 // the bytes of a state, and of what has changed since
	changesVersion  = 3 // what has changed
	tailVersion     = 4 // what was applied
)

// Snapshot returns the state as bytes, with a version and a checksum. An error is the state
// machine's.
func (s *State) Snapshot() ([]byte, error) {
	from, err := s.freeze()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(s.wholeBytes + s.wholeBytes/8)
	if _, err := buf.ReadFrom(from); err != nil {
		return nil, fmt.Errorf("smr: snapshot of the state machine at slot %d: %w", s.applied, err)
	}
	return buf.Bytes(), nil
}

// Checksum is the checksum of snapshots.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Check returns what is wrong with the state, or nil.
func (s *State) Check() error {
	if err := s.members.check(); err != nil && s.applied > 0 {
		return err
	}
	return s.sessions.check()
}

// Salvaged returns what is known of a state that has everything.
func (s *State) Salvaged(doubtful int) smr.Salvaged {
	return smr.Salvaged{Members: s.Members(), Applied: s.applied, Doubtful: doubtful}
}

// ApplyAll applies the entries of one slot, in order, in protocols that agree on batches; each gets
// the answer to each of them. Otherwise it is Apply.
func (s *State) ApplyAll(slot smr.Slot, entries []Entry, each func(i int, r Reply)) {
	if slot <= s.applied {
		panic(fmt.Sprintf("smr: apply slot %d after slot %d", slot, s.applied))
	}
	for i, e := range entries {
		s.applied = slot - 1
		each(i, s.Apply(slot, e))
	}
	s.applied = slot
}

// Generation counts the changes of the members: it is higher after each one that had an effect, by
// one. What it is at the beginning depends on the group.
func (s *State) Generation() uint64 {
	return uint64(len(s.members.now)) + 2*uint64(len(s.members.removed))
}

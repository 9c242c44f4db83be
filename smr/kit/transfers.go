package kit

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// ChunkPatience is how many round trips a sender waits for an answer before it sends chunks of a
// snapshot again.
const ChunkPatience = 3.

// Transfers are the snapshots on their way to other replicas, one to each.
type Transfers struct {
	from  *Admission // whose disk they are of
	tempo *Tempo     // of the answers
	out   map[protocol.ID]*Outgoing
}

// NewTransfers returns the transfers of a replica, none at first.
func NewTransfers(from *Admission, tempo *Tempo) *Transfers {
	return &Transfers{from: from, tempo: tempo, out: map[protocol.ID]*Outgoing{}}
}

// patience is how long an answer is waited for at present: to send chunks again that are on their
// way only makes them later.
func (t *Transfers) patience() time.Duration { return t.tempo.Times(ChunkPatience) }

// Of returns the snapshot that is on its way to a replica, nil if there is none.
func (t *Transfers) Of(id protocol.ID) *Outgoing { return t.out[id] }

// To returns the replicas to which snapshots are on their way, in order.
func (t *Transfers) To() []protocol.ID { return slices.Sorted(maps.Keys(t.out)) }

// Len returns how many snapshots are on their way.
func (t *Transfers) Len() int { return len(t.out) }

// Drop forgets the snapshot that is on its way to a replica, if there is one.
func (t *Transfers) Drop(id protocol.ID) { delete(t.out, id) }

// Clear forgets all.
func (t *Transfers) Clear() { clear(t.out) }

// Begin sends a replica a snapshot in place of another one that is on its way to it.
func (t *Transfers) Begin(env *protocol.Env[smr.Message], to protocol.ID, out *Outgoing) {
	t.out[to] = out
	t.Continue(env, to)
}

// Continue goes on with the snapshot that is on its way to a replica, if there is one: see
// Outgoing.Continue.
func (t *Transfers) Continue(env *protocol.Env[smr.Message], to protocol.ID) {
	if out := t.out[to]; out != nil {
		out.Continue(env, to, t.from.Own(), t.patience())
	}
}

// OnTimer goes on at a TransferTimer, and reports whether the transfer has failed and was dropped:
// the replica asks for another one.
func (t *Transfers) OnTimer(env *protocol.Env[smr.Message], to protocol.ID) (failed bool) {
	if out := t.out[to]; out != nil && out.Failed() {
		t.Drop(to)
		return true
	}
	t.Continue(env, to)
	return false
}

// OnWanted takes an answer of a replica and sends more, or returns the transfer, which is over, if
// the replica has all of it.
func (t *Transfers) OnWanted(env *protocol.Env[smr.Message], from protocol.ID, m SnapshotWanted) (done *Outgoing) {
	out := t.out[from]
	if out == nil {
		return nil
	}
	if out.Wanted(env, m) {
		t.Drop(from)
		return out
	}
	t.Continue(env, from)
	return nil
}

// HeldCut returns up to which slot a log may be cut, at most to a given one: whoever is being sent
// a state goes on from there with the log, or would need another state. As long as fewer bytes were
// applied since that state was made than a log may have, ReplicaConfig.LogBytes, or than the state
// has, it holds the cut. With the first bound alone, a large state on a long way would never be
// followed by its log: sending it takes longer than writing that much.
func (s *State) HeldCut(t *Transfers, to smr.Slot, logBytes int) smr.Slot {
	for _, out := range t.out { //pure:ok the least of all
		if !out.failed && s.passedBytes-out.passed < max(logBytes, int(out.size)) {
			to = min(to, out.slot)
		}
	}
	return to
}

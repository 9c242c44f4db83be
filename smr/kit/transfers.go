package kit

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// ChunkPatience is how many round trips a sender waits for an answer before it sends chunks of a
// snapshot again.
const ChunkPatience = 3.

// Transfers are the snapshots on their way to other replicas, one to each.
type Transfers map[protocol.ID]*Outgoing

// Begin sends a replica a snapshot in place of another one that is on its way to it.
func (t Transfers) Begin(
	env *protocol.Env[smr.Message], to protocol.ID, out *Outgoing, self Incarnation, patience time.Duration,
) {
	t[to] = out
	out.Continue(env, to, self, patience)
}

// Continue goes on with the snapshot that is on its way to a replica, if there is one: see
// Outgoing.Continue.
func (t Transfers) Continue(env *protocol.Env[smr.Message], to protocol.ID, self Incarnation, patience time.Duration) {
	if out := t[to]; out != nil {
		out.Continue(env, to, self, patience)
	}
}

// OnTimer goes on at a TransferTimer, and tells whether the transfer has failed and was dropped:
// the replica asks for another one.
func (t Transfers) OnTimer(
	env *protocol.Env[smr.Message], to protocol.ID, self Incarnation, patience time.Duration,
) (failed bool) {
	if out := t[to]; out != nil && out.Failed() {
		delete(t, to)
		return true
	}
	t.Continue(env, to, self, patience)
	return false
}

// HeldCut returns up to which slot a log may be cut, at most to a given one: whoever is being sent
// a state goes on from there with the log, or would need another state. As long as fewer bytes were
// applied since that state was made than a log may have, ReplicaConfig.LogBytes, it holds the cut.
func (s *State) HeldCut(t Transfers, to smr.Slot, logBytes int) smr.Slot {
	for _, out := range t { //pure:ok the least of all
		if !out.failed && s.passedBytes-out.passed < logBytes {
			to = min(to, out.slot)
		}
	}
	return to
}

// OnWanted takes an answer of a replica and sends more, or returns the transfer, which is over, if
// the replica has all of it.
func (t Transfers) OnWanted(
	env *protocol.Env[smr.Message], from protocol.ID, m SnapshotWanted, self Incarnation, patience time.Duration,
) (done *Outgoing) {
	out := t[from]
	if out == nil {
		return nil
	}
	if out.Wanted(env, m) {
		delete(t, from)
		return out
	}
	out.Continue(env, from, self, patience)
	return nil
}

package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// cut forgets the slots up to one that is in the snapshot on disk.
//
// A vote may be forgotten only if no later leader can need it. The cut removes slots that this
// replica has applied and that are in the snapshot. They are decided, so no ballot proposes
// anything else in them; a candidate that lacks them cannot use this replica's promise
// (promise.Base, see onPromise), and a follower that does gets the state. The promise itself must
// outlive its record: each cut writes it again.
func (r *replica) cut(env *protocol.Env[smr.Message], to smr.Slot) {
	r.log.cut(env, to, promiseRecord{r.promised, r.commit})
}

// sendSnapshot begins to send a follower the state as it is: the one on disk may be too old for the
// log that is left, or may not yet list a new member.
func (r *replica) sendSnapshot(env *protocol.Env[smr.Message], p *peer) {
	out, err := r.State.SendState(r.commit, nil)
	if err != nil {
		return // the follower asks again
	}
	r.Transfers.Begin(env, p.id, out)
}

// onSnapshotWanted goes on with a transfer. When the follower has all of the state, it needs the
// slots above, whatever was sent before: it took none of that, as its log had a gap there.
func (r *replica) onSnapshotWanted(
	env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m kit.SnapshotWanted,
) {
	p := r.peer(from)
	if r.role != leader || p == nil || p.stranger(disk) {
		return
	}
	p.heard = true
	out := r.Transfers.OnWanted(env, from, m)
	if out == nil {
		return
	}
	p.flow.Restart(max(p.match, out.Slot()) + 1)
	r.pump(env, p)
}

// takes reports whether the replica takes a state, from whoever sends it: a state has decided slots
// only, which are the same everywhere, so its sender need not lead any more. A leader has all that
// may be decided, and needs none. A replica that is not admitted, and does not join, may be on a
// disk that has been replaced.
func (r *replica) takes(protocol.ID, kit.SnapshotChunk) (has smr.Slot, ok bool) {
	return r.commit, r.role != leader && (r.role != blank || r.Cfg.Join)
}

// onInstalled goes on from a snapshot. Votes for later slots stay: others may have counted them,
// and an entry may be decided by them. A candidacy ends, as its phase 1 began at an older commit.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	r.commit = s.Slot
	r.log.journal.Has(s.Slot)
	r.cut(env, s.Slot)
	r.rematch() // votes that were behind a gap may follow the snapshot now
	if r.role == candidate {
		r.becomeFollower(env, 0)
	}
	r.MembersChanged(env)
	return nil
}

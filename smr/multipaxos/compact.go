package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// maybeSnapshot writes a snapshot when one is due, and cuts the log.
func (r *replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	if to, ok := r.log.disk.MaybeSave(env, r.Cfg, r.State, r.Transfers, nil); ok {
		r.log.cut(env, to, promiseRecord{r.promised, r.commit})
	}
}

func (r *replica) onSaved(env *protocol.Env[smr.Message], done bool, err error) {
	if to, ok := r.log.disk.Saved(r.Cfg, r.State, r.Transfers, done, err); ok {
		r.log.cut(env, to, promiseRecord{r.promised, r.commit})
	}
}

// sendSnapshot begins to send a follower the state as it is: the one on disk may be too old for the
// log that is left, or may not yet list a new member.
func (r *replica) sendSnapshot(env *protocol.Env[smr.Message], p *peer) {
	out, err := r.State.SendState(r.commit, nil)
	if err != nil {
		return // it is asked for again
	}
	r.Transfers.Begin(env, p.id, out)
}

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
	p.flow = max(p.match, out.Slot())
	p.next = p.flow + 1
	p.underway.Forget()
	r.pump(env, p)
}

func (r *replica) onChunk(env *protocol.Env[smr.Message], from protocol.ID, m kit.SnapshotChunk) {
	if r.role != leader && (r.role != blank || r.Cfg.Join) {
		r.TakeChunk(env, from, m, r.commit)
	}
}

// onInstalled goes on from a snapshot. Votes for later slots stay: others may have counted them,
// and an entry may be decided by them. A candidacy ends, as its phase 1 began at an older commit.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	r.commit = s.Slot
	r.log.disk.Has(s.Slot)
	r.log.cut(env, s.Slot, promiseRecord{r.promised, s.Slot})
	r.rematch()
	if r.role == candidate {
		r.becomeFollower(env, 0)
	}
	r.MembersChanged(env)
	return nil
}

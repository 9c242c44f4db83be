package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// maybeSnapshot writes a snapshot when one is due, and cuts the log.
func (r *Replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	if to, ok := r.log.disk.MaybeSave(env, r.cfg, r.state, r.transfers, nil); ok {
		r.log.cut(env, to, PromiseRecord{r.promised, r.commit})
	}
}

// sendSnapshot begins to send a follower the state as it is: the one on disk may be too old for the
// log that is left, or for a new member to find itself in it.
func (r *Replica) sendSnapshot(env *protocol.Env[smr.Message], p *peer) {
	out, err := r.state.SendState(r.commit, nil)
	if err != nil {
		return // it is asked for again
	}
	r.transfers.Begin(env, p.id, out)
}

func (r *Replica) onSnapshotWanted(
	env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m kit.SnapshotWanted,
) {
	p := r.peer(from)
	if r.role != leader || p == nil || p.stranger(disk) {
		return
	}
	p.heard = true
	out := r.transfers.OnWanted(env, from, m)
	if out == nil {
		return
	}
	p.flow = max(p.match, out.Slot())
	p.next = p.flow + 1
	p.underway.Forget()
	r.pump(env, p)
}

// onChunk takes a part of a snapshot. What it says is decided, whoever sends it.
func (r *Replica) onChunk(env *protocol.Env[smr.Message], from protocol.ID, m kit.SnapshotChunk) {
	if r.role == removed || r.role == leader || r.role == blank && !r.cfg.Join {
		return
	}
	answer, whole, err := r.state.Take(env, m, r.commit, nil)
	if (whole != nil || err != nil) && !r.install(env, whole, err) {
		return
	}
	r.admission.Send(env, from, answer)
}

// install puts a snapshot in the place of the state. Votes for later slots stay: they are promises.
func (r *Replica) install(env *protocol.Env[smr.Message], s *kit.Arrived, err error) bool {
	if err == nil {
		err = r.state.Install(env, s)
	}
	if err != nil {
		env.Send(protocol.App, smr.Refused{Reason: "a snapshot could not be restored, so the state cannot be trusted: " +
			err.Error()})
		r.role = removed
		return false
	}
	r.commit = s.Slot
	r.log.disk.Has(s.Slot)
	r.log.cut(env, s.Slot, PromiseRecord{r.promised, s.Slot})
	r.rematch()
	if r.role == candidate {
		r.becomeFollower(env, 0)
	}
	r.membersChanged(env)
	return true
}

package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// maybeSnapshot writes a snapshot when enough was executed since the last one, and cuts the log. An
// eighth of what was executed in between stays, for followers that lag a little.
func (r *Replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	every, executed := smr.Slot(r.cfg.SnapshotEvery), r.commit-r.snapshot
	if r.state.Saving() || executed == 0 || executed < every && r.state.Fullness(r.cfg.LogBytes) < 1 {
		return
	}
	done, err := r.state.BeginSave(env, r.cfg, r.commit, nil)
	r.saved(env, done, err)
}

// saved cuts the log if a snapshot is on disk. After an error the log stays; it is tried again
// after the next command.
func (r *Replica) saved(env *protocol.Env[smr.Message], done bool, err error) {
	if !done || err != nil {
		return
	}
	slack := min(smr.Slot(r.cfg.SnapshotEvery), r.state.Saved()-r.snapshot) / 8
	r.snapshot = r.state.Saved()
	r.log.cut(env, r.state.HeldCut(r.lead.out, r.snapshot-slack, r.cfg.LogBytes), PromiseRecord{r.promised, r.commit})
}

// sendSnapshot begins to send a follower the state as it is: the one on disk may be too old for the
// log that is left, or for a new member to find itself in it.
func (r *Replica) sendSnapshot(env *protocol.Env[smr.Message], p *peer) {
	out, err := r.state.SendState(r.commit, nil)
	if err != nil {
		return // it is asked for again
	}
	r.lead.out.Begin(env, p.id, out, r.admission.Own(), r.times(resend))
}

func (r *Replica) onSnapshotWanted(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m kit.SnapshotWanted) {
	p := r.peer(from)
	if r.role != leader || p == nil || p.stranger(disk) {
		return
	}
	p.heard = true
	out := r.lead.out.OnWanted(env, from, m, r.admission.Own(), r.times(resend))
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
		env.Send(protocol.App, smr.Refused{Reason: "a snapshot could not be restored, so the state cannot be trusted: " + err.Error()})
		r.role = removed
		return false
	}
	r.snapshot, r.commit = s.Slot, s.Slot
	r.log.cut(env, s.Slot, PromiseRecord{r.promised, s.Slot})
	r.rematch()
	if r.role == candidate {
		r.becomeFollower(env, 0)
	}
	r.membersChanged(env)
	return true
}

package epaxos

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// beginGeneration begins one with the members of the state, in which nothing was proposed yet.
//
// The rows are empty: no vote of the old members may count for an instance of the new ones. The
// members A, B, C and then A, D, E have majorities without a replica in common, B, C and D, E: one
// instance of A's could be decided twice.
func (r *replica) beginGeneration(number uint64) {
	r.generation, r.group = number, r.State.Members()
	n := len(r.group)
	r.rows, r.index, r.fences = make([]row, n), newConflictIndex(n), nil
	r.stable, r.reach, r.checkpoint, r.taken = make(deps, n), make(deps, n), instanceID{}, 0
	r.onDisk = r.stable
	r.woken, r.waiting = nil, nil
}

// endGeneration ends a generation: a change of the members was executed. What else was proposed in
// it is not executed, whatever is decided about it, and is proposed again if its clients still wait
// here. All replicas know of each command whether it came before, as the change conflicts with
// everything.
//
// A command that was not executed by then is void even if it was decided. Otherwise replicas that
// execute the change at different moments would take different parts of what follows into the next
// generation.
func (r *replica) endGeneration(env *protocol.Env[smr.Message]) {
	r.beginGeneration(r.generation + 1)
	r.active, r.ahead = false, 0
	r.rewrite(env)
	r.proposeAgain(env)
	r.reads.restart()
	r.MembersChanged(env)
	for _, m := range r.group {
		if m.ID != r.Cfg.ID {
			r.Admission.Send(env, m.ID, news{head: r.head(), Top: r.index.top.clone()})
		}
	}
}

// proposeAgain queues what was proposed and is not executed.
//
// It goes by index: that is the order in which clients sent the commands.
func (r *replica) proposeAgain(env *protocol.Env[smr.Message]) {
	for _, id := range slices.SortedFunc(maps.Keys(r.mine), byIndex) {
		r.again(env, r.mine[id])
		delete(r.mine, id)
	}
}

// maybeCheckpoint proposes a checkpoint when enough was executed since the last one. Members take
// turns; if one does not, the next one does a little later.
//
// They take turns because a checkpoint conflicts with everything: if all proposed one at the same
// time, each of these and every command around them would take the slow path.
func (r *replica) maybeCheckpoint(env *protocol.Env[smr.Message]) {
	full := r.State.Fullness(r.Cfg.LogBytes)
	if !r.active || r.State.Saving() || r.since < smr.Slot(r.Cfg.SnapshotEvery) && full < 1 {
		return
	}
	n := uint64(len(r.group))
	turn := (uint64(r.position(r.Cfg.ID)) + n - r.taken%n) % n
	late := smr.Slot(turn) * smr.Slot(r.Cfg.SnapshotEvery/8+1)
	if r.since < smr.Slot(r.Cfg.SnapshotEvery)+late && full < 1+float64(turn)/8 {
		return
	}
	own := &r.rows[r.position(r.Cfg.ID)]
	for x := own.done + 1; x <= own.top(); x++ {
		if i := own.at(x); i.cmd != nil && i.cmd.Kind == checkpoint && !i.executed {
			return
		}
	}
	r.begin(env, &command{Kind: checkpoint}, &proposal{})
}

// takeSnapshot writes a snapshot of the state behind a checkpoint. All that conflicts with nothing
// was executed in some order, but all replicas that come to it have executed the same instances:
// those up to reach. While one is being written another checkpoint begins none.
//
// The slot is evened out first. Replicas that executed commuting commands in different orders stand
// at different slots, and a snapshot has to be the same whoever takes it.
func (r *replica) takeSnapshot(env *protocol.Env[smr.Message], checkpoint *instance) {
	r.stable, r.checkpoint = r.reach.clone(), checkpoint.id
	r.taken++
	r.index.forget(r.stable)
	r.evenOut()
	if r.State.Saving() {
		return
	}
	done, err := r.State.BeginSave(env, r.Cfg, r.even, placeLayout.Encode(r.front(0)))
	if err == nil {
		r.saving.stable, r.saving.first = r.stable, r.logAgain(env)
	}
	r.onSaved(env, done, err)
}

// onSaved cuts the log if a snapshot is on disk. An eighth of what is new in it stays in memory, so
// that a replica that lags a little needs no snapshot; all of it while the one before is on its way
// to somebody, who goes on from there.
func (r *replica) onSaved(env *protocol.Env[smr.Message], done bool, err error) {
	switch {
	case err != nil:
		r.noSnapshot(env, err)
	case done:
		r.snapshot = r.State.Saved()
		for p := range r.rows {
			to := r.onDisk[p]
			if stable := r.saving.stable[p]; r.Transfers.Len() == 0 {
				to = stable - (stable-to)/8
			}
			r.rows[p].forget(to)
		}
		r.onDisk = r.saving.stable
		env.Truncate(r.saving.first)
	}
}

// noSnapshot ends the replica: without a snapshot the disk does not have what the others rely on,
// or the log never ends.
func (r *replica) noSnapshot(env *protocol.Env[smr.Message], err error) {
	r.active = false
	r.Fail(env, fmt.Errorf("the state machine makes no snapshot: %w", err))
}

// rewrite makes the state durable, and puts what is not in it in the place of the log.
func (r *replica) rewrite(env *protocol.Env[smr.Message]) {
	r.evenOut()
	if _, err := r.State.SaveNow(env, r.Cfg, r.even, placeLayout.Encode(r.front(0))); err != nil {
		r.noSnapshot(env, err)
		return
	}
	r.snapshot = r.even
	r.saving.stable, r.saving.first = r.stable, r.logAgain(env)
	env.Truncate(r.saving.first)
}

func (r *replica) rewriteLog(env *protocol.Env[smr.Message]) {
	env.Truncate(r.logAgain(env))
}

// logAgain writes records of all that is above the checkpoint, and returns the index of the first
// one. They and what follows is all of the log that a snapshot of the checkpoint needs beside it.
//
// Records have to be written again, and not only cut, since instances are not executed in the order
// in which they were written down. An early record may be of an instance that is still open. A
// promise without a vote is written again too: an acceptor that forgot it would agree in ballot 0
// after all.
func (r *replica) logAgain(env *protocol.Env[smr.Message]) (first uint64) {
	first = env.NextIndex()
	r.logged = 0
	for p := range r.rows {
		w := &r.rows[p]
		for x := max(w.base, r.stable[p]) + 1; x <= w.top(); x++ {
			if i := w.at(x); i.phase != phaseUnknown || i.ballot != 0 {
				i.logged = false
				r.save(env, i, true)
			}
		}
	}
	return first
}

const imageVersion = 1

// image returns the state with where in the order of instances it stands.
func (r *replica) image() ([]byte, error) {
	state, err := r.State.Snapshot()
	if err != nil {
		return nil, err
	}
	return append(placeLayout.Encode(r.front(len(state))), state...), nil
}

// front returns what an image has in front of the state. The state's size is 0 if it is not known.
func (r *replica) front(stateBytes int) place {
	return place{
		generation: r.generation, taken: r.taken, stamp: r.stamp, checkpoint: r.checkpoint, stable: r.stable,
		sessions: r.sessions, stateBytes: uint64(stateBytes),
	}
}

// place is what an image says beside the state.
type place struct {
	generation, taken, stamp uint64
	checkpoint               instanceID
	stable                   deps
	sessions                 sessionAges
	stateBytes               uint64 // 0 if the size was not known
}

var placeLayout = wirefmt.NewLayout("epaxos: image", func(c *wirefmt.Coder, p *place) {
	wirefmt.Version(c, imageVersion)
	wirefmt.Uint(c, &p.generation)
	wirefmt.Uint(c, &p.taken)
	wirefmt.Uint(c, &p.stamp)
	idFields(c, &p.checkpoint)
	depsFields(c, &p.stable)
	wirefmt.Uint(c, &p.sessions.opened)
	wirefmt.Map(c, &p.sessions.used, 2, func(c *wirefmt.Coder, id *kit.SessionID, at *uint64) {
		wirefmt.Uint(c, id)
		wirefmt.Uint(c, at)
	})
	if p.sessions.used == nil {
		p.sessions.used = map[kit.SessionID]uint64{}
	}
	wirefmt.Uint(c, &p.stateBytes)
})

// place returns what the image of the state that was just restored has in front of it.
func (r *replica) place(front []byte) (place, error) {
	p, err := placeLayout.Decode(front)
	if err != nil {
		return place{}, err
	}
	if len(p.stable) != len(r.State.Members()) || p.generation == 0 {
		return place{}, fmt.Errorf("image of generation %d has %d rows, and the group %d members", p.generation,
			len(p.stable), len(r.State.Members()))
	}
	return p, nil
}

// resume takes over where an image stands.
//
// The checkpoint goes into the index, as all that it stands for has left it. Else a command that is
// proposed right after a restart would depend on nothing, and another replica could execute it
// before commands that conflict with it and are in this image.
func (r *replica) resume(p place) {
	r.taken, r.stamp, r.checkpoint, r.sessions = p.taken, max(r.stamp, p.stamp), p.checkpoint, p.sessions
	r.stable, r.reach = p.stable.clone(), p.stable.clone()
	if c := r.position(p.checkpoint.Row); c >= 0 && p.checkpoint.Index > 0 {
		r.index.note(c, p.checkpoint.Index, footprint{all: true})
	}
	r.onDisk, r.snapshot = r.stable, r.State.Applied()
	r.even, r.since, r.high = r.snapshot, 0, 0
}

// loadSessions takes the sessions' ages as of the snapshot on disk. What is replayed behind it has
// to evict those that it evicted before.
func (r *replica) loadSessions(front []byte) error {
	p, err := placeLayout.Decode(front)
	r.sessions = p.sessions
	return err
}

// load takes over what is on the disk, and reports whether it is blank.
func (r *replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, placeLayout.Length, func() error {
		data, err := r.image()
		if err == nil {
			r.State.Save(env, kit.Snapshot{Data: data})
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if found.Snapshot {
		p, err := r.place(found.Front)
		if err != nil {
			return false, err
		}
		r.beginGeneration(p.generation)
		r.resume(p)
		for k := range r.rows {
			r.rows[k].forget(p.stable[k])
		}
		if err := r.finishSnapshot(env, found.Front, log); err != nil {
			return false, err
		}
	}
	for _, rec := range log {
		if err := r.loadRecord(rec); err != nil {
			return false, err
		}
	}
	for k := range r.rows {
		w := &r.rows[k]
		for x := w.base + 1; x <= w.top(); x++ {
			if i := w.at(x); i.phase == phaseCommitted {
				r.woken = append(r.woken, i)
				if x == w.known+1 {
					w.known++
				}
			}
		}
	}
	return found.Blank, nil
}

// finishSnapshot begins the snapshot again that the end of a generation left to be written: those
// who come later need it, and perhaps no checkpoint comes before they do.
func (r *replica) finishSnapshot(
	env *protocol.Env[smr.Message], front []byte, log []protocol.Record[smr.Message],
) error {
	if !r.State.HasTail() {
		return nil
	}
	r.saving.stable, r.saving.first = r.stable, env.NextIndex()
	if len(log) > 0 {
		r.saving.first = log[0].Index
	}
	_, err := r.State.BeginSave(env, r.Cfg, r.snapshot, front)
	return err
}

func (r *replica) loadRecord(rec protocol.Record[smr.Message]) error {
	m, ok := rec.Msg.(instanceRecord)
	if !ok {
		return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
	}
	if p := r.position(m.ID.Row); p >= 0 && m.ID.Index <= r.rows[p].base {
		return nil
	}
	i := r.find(m.ID)
	if i == nil || len(m.Deps) > 0 && !r.hear(m.Deps) {
		return fmt.Errorf("record %d is of the instance %v, which cannot be", rec.Index, m.ID)
	}
	if m.Cmd != nil {
		r.setCommand(i, m.Cmd)
	}
	i.phase, i.ballot, i.voted, i.nothing, i.init, i.deps = phase(m.Phase), m.Ballot, m.Voted, m.Nothing, m.Init, m.Deps
	if !i.logged {
		i.logged = true
		r.logged++
	}
	if i.phase > phaseUnknown && (len(i.deps) == 0 || i.cmd == nil && !i.nothing) {
		return fmt.Errorf("record %d: the instance %v is %v without a command", rec.Index, m.ID, i.phase)
	}
	return nil
}

// onInstalled goes on from a snapshot. Within a generation, what was promised and voted for later
// instances stays.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	p, err := r.place(s.Front)
	if err != nil {
		return err
	}
	if p.generation != r.generation {
		r.beginGeneration(p.generation)
		r.active = false
		r.resume(p)
		r.proposeInstalled(env)
		r.reads.restart()
	} else {
		r.resume(p)
		r.proposeInstalled(env)
		r.woken = nil
	}
	r.ahead = 0
	for k := range r.rows {
		r.rows[k].forget(p.stable[k])
	}
	r.index.forget(r.stable)
	r.rewriteLog(env)
	r.fences = slices.DeleteFunc(r.fences, func(i *instance) bool { return i.id.Index <= r.stable[i.row] })
	r.waiting = slices.DeleteFunc(r.waiting, func(t *attempt) bool { return t.of.id.Index <= r.stable[t.of.row] })
	for k := range r.rows {
		w := &r.rows[k]
		for x := w.base + 1; x <= w.top(); x++ {
			i := w.at(x)
			// Those that they waited for may be in the snapshot, and would never wake them. So
			// whatever is decided and not executed is looked at again.
			i.waiters = nil
			if i.decided() && !i.executed {
				r.woken = append(r.woken, i)
			}
			if i.decided() && x == w.known+1 {
				w.known++
			}
			if i.executed && x == w.done+1 {
				w.done++
			}
		}
	}
	r.MembersChanged(env)
	r.execute(env)
	return nil
}

// proposeInstalled sees to the own proposals that a snapshot has overtaken: what it has executed is
// answered, the rest is proposed again.
func (r *replica) proposeInstalled(env *protocol.Env[smr.Message]) {
	own := r.position(r.Cfg.ID)
	for _, id := range slices.SortedFunc(maps.Keys(r.mine), byIndex) {
		if own >= 0 && id.Index > r.stable[own] && r.rows[own].at(id.Index) != nil {
			continue // still to be decided
		}
		r.again(env, r.mine[id])
		delete(r.mine, id)
	}
}

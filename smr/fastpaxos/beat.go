package fastpaxos

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Bounds on what is remembered of other replicas, in replicas and in beats.
const (
	maxProgress = 64
	forgetAfter = 100
)

func (r *Replica) fetch() Fetch {
	m := Fetch{r.head(r.promised), r.state.Applied()}
	if len(r.state.Members()) == 0 {
		m.Generation = 0 // only a snapshot says with whom the group began
	}
	return m
}

// onTick says that the replica is there, and looks who else is.
func (r *Replica) onTick(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.cfg, env.Now, r.times(beat)), beatTimer{})
	r.beat(env)
	if !r.tempo.Beat(env.Now, beat) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.progress)) {
		p := r.progress[id]
		if p.age++; p.age > forgetAfter {
			delete(r.progress, id)
			delete(r.outgoing, id)
		} else {
			r.progress[id] = p
		}
		r.outgoing.Continue(env, id, r.admission.Own(), r.tempo.Times(resend))
	}
	if r.active() && r.admission.Admitted() {
		r.watch(env)
		if r.lead != nil {
			r.supervise(env)
		}
	}
	r.maybeFetch(env)
	r.applied = r.state.Applied()
}

// beat tells all how far the replica is, and the coordinator's acceptors which slots are open.
func (r *Replica) beat(env *protocol.Env[smr.Message]) {
	m := Beat{Head: r.head(r.promised), Applied: r.state.Applied()}
	if r.lead != nil {
		m.Leads, m.Open = true, r.open
	}
	asks := r.tempo.Asks()
	for _, id := range r.others() {
		r.admission.SendAhead(env, id, m)
		if asks {
			r.tempo.Ask(env, id)
		}
	}
}

// others returns all who are told how far the replica is: members, and who has asked.
func (r *Replica) others() []protocol.ID {
	ids := r.members()
	if len(ids) == 0 {
		for _, m := range r.cfg.Members {
			ids = append(ids, m.ID)
		}
	}
	ids = append(ids, slices.Sorted(maps.Keys(r.progress))...)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id protocol.ID) bool { return id == r.cfg.ID })
}

// heard notes how far another replica has come.
func (r *Replica) heard(from protocol.ID, applied smr.Slot) {
	if _, known := r.progress[from]; known || len(r.progress) < maxProgress {
		r.progress[from] = progress{applied: applied}
	}
}

// maybeFetch asks the one that is furthest for what is decided, if that does not come by itself.
func (r *Replica) maybeFetch(env *protocol.Env[smr.Message]) {
	r.fetched++
	_, member := r.state.Member(r.cfg.ID)
	if r.state.Applied() != r.applied && member || r.fetched < 2 {
		return
	}
	if len(r.state.Members()) == 0 {
		if ids := r.others(); len(ids) > 0 {
			r.fetched = 0
			r.admission.Send(env, ids[env.Rand.IntN(len(ids))], r.fetch())
		}
		return
	}
	var best protocol.ID
	furthest := r.state.Applied()
	for _, id := range slices.Sorted(maps.Keys(r.progress)) {
		if p := r.progress[id]; p.age <= 2 && p.applied > furthest {
			best, furthest = id, p.applied
		}
	}
	if best != 0 {
		r.fetched = 0
		r.admission.Send(env, best, r.fetch())
	}
}

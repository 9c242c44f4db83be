package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
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
	r.progress.Beat(env)
	if r.active() && r.admission.Admitted() {
		r.watch(env)
		if r.lead != nil {
			r.supervise(env)
		}
	}
	_, member := r.state.Member(r.cfg.ID)
	if ask := r.progress.Lags(env, r.state.Applied(), member, len(r.state.Members()) > 0, r.others()); ask != 0 {
		r.admission.Send(env, ask, r.fetch())
	}
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
	return r.progress.Peers(r.cfg.ID, ids...)
}

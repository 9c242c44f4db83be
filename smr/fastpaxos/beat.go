package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// fetch asks for what is decided above what this replica has applied. Generation 0 says that it
// needs a state.
func (r *replica) fetch() fetch {
	m := fetch{r.head(r.promised), r.State.Applied()}
	if len(r.State.Members()) == 0 {
		m.Generation = 0 // only a snapshot says with whom the group began
	}
	return m
}

// onTick says that the replica is there, and looks who else is.
func (r *replica) onTick(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(beatEvery)), beatTimer{})
	r.beat(env)
	if !r.Tempo.Beat(env.Now, beatEvery) {
		return
	}
	r.progress.Beat(env)
	if r.active() && r.Admission.Admitted() {
		r.watch(env)
		if r.lead != nil {
			r.supervise(env)
		}
	}
	_, member := r.State.Member(r.Cfg.ID)
	ask := r.progress.Lags(env, r.State.Applied(), member, len(r.State.Members()) > 0, r.others())
	if ask != 0 && !r.Arriving(env) {
		r.Admission.Send(env, ask, r.fetch())
	}
}

// beat tells all how far the replica is, and the coordinator's acceptors which slots are open. It
// waits for no disk: what is applied is on the disks of a quorum, and a coordinator's promise of
// its era has been on its own since phase 1.
func (r *replica) beat(env *protocol.Env[smr.Message]) {
	m := beat{head: r.head(r.promised), Applied: r.State.Applied()}
	if r.lead != nil {
		m.Leads, m.Open = true, r.open
	}
	r.Beat(env, r.others(), m)
}

// others returns all who are told how far the replica is: members, and who has asked.
func (r *replica) others() []protocol.ID {
	return r.progress.Peers(r.Cfg, r.State.MemberIDs()...)
}

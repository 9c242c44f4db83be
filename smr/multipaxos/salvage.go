package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// salvage executes the whole log. How far it is decided may be on disk late, so what was accepted
// above that counts as well.
func salvage(cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) (smr.Salvaged, error) {
	r, err := NewReplica(cfg)
	if err != nil {
		return smr.Salvaged{}, err
	}
	if err := r.load(env, log); err != nil {
		return smr.Salvaged{}, err
	}
	doubtful := 0
	for s := r.state.Applied() + 1; s <= r.log.last(); s++ {
		r.state.Apply(s, r.log.at(s).Entry)
		doubtful++
	}
	return r.state.Salvaged(doubtful), nil
}

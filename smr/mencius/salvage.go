package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// salvage executes what was accepted in all tracks, in the order of their slots. A slot of which
// the disk has nothing was not executed with a command in it.
func salvage(
	cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	r, err := NewReplica(cfg)
	if err != nil {
		return smr.Salvaged{}, err
	}
	blank := len(log) == 0
	if err := r.load(env, log, &blank); err != nil {
		return smr.Salvaged{}, err
	}
	last := smr.Slot(0)
	for _, l := range r.epoch.tracks {
		if l.end() > 0 {
			last = max(last, r.epoch.slot(l, l.end()))
		}
	}
	if r.epoch.last != 0 {
		last = min(last, r.epoch.last)
	}
	doubtful := 0
	for s := r.state.Applied() + 1; s <= last; s++ {
		l, p := r.epoch.at(s)
		if p > l.end() || l.at(p).Entry.Kind == kit.NoOp {
			r.state.Skip(s)
			continue
		}
		r.state.Apply(s, l.at(p).Entry)
		if !l.decided(p) {
			doubtful++
		}
	}
	return r.state.Salvaged(doubtful), nil
}

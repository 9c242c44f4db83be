package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// applyDoubtful executes what was accepted in all tracks, in the order of their slots. A slot of
// which the disk has nothing was not executed with a command in it.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	last := smr.Slot(0)
	for _, l := range r.epoch.tracks {
		if l.end() > 0 {
			last = max(last, r.epoch.slot(l, l.end()))
		}
	}
	if r.epoch.last != 0 {
		last = min(last, r.epoch.last)
	}
	for s := r.State.Applied() + 1; s <= last; s++ {
		l, p := r.epoch.at(s)
		if p > l.end() || l.at(p).Entry.Kind == kit.NoOp {
			r.State.Skip(s)
			continue
		}
		r.State.Apply(s, l.at(p).Entry)
		if !l.decided(p) {
			n++
		}
	}
	return n, nil
}

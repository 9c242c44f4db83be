package domino

import (
	"testing"

	"github.com/foresay/foresay/smr/kit"
)

// TestExecutedProposalsAreNotMadeAgain: a replica that hears from another one what was executed
// proposes again what of its own was not, be it a session to open, and nothing that was. Where only
// the coordinator counts votes, the others hear everything so, and would open a session for ever.
func TestExecutedProposalsAreNotMadeAgain(t *testing.T) {
	for _, executed := range []bool{false, true} {
		_, r, env := inHand(t, "na3", 2)
		e := kit.Entry{Kind: kit.OpenSession, Client: 77, Seq: 5, Open: &kit.Open{MaxSessions: 8, Window: 8}}
		low := r.learner.executed
		own := item{Slot: above(low, r.digit), Answer: r.Cfg.ID, Entries: []kit.Entry{e}}
		r.acceptor.track(r.Cfg.ID).items.add(own)
		m := decided{Low: low, High: own.Slot, Executed: own.Slot}
		if executed {
			m.Items = []item{own}
		}
		r.onDecided(env, r.others()[0], m)
		if again := len(r.queue) > 0; again == executed || r.learner.executed != own.Slot {
			t.Errorf("executed %v: proposed again %v, executed up to %d of %d", executed, again, r.learner.executed, own.Slot)
		}
	}
}

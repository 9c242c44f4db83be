package kit

import (
	"fmt"
	"math"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// How slowly the state is compared with its digests in the background.
const (
	scrubTicks = 8  // between two steps
	scrubKeys  = 16 // of a step
)

// repair is how a replica looks for what has become wrong on its disk.
type repair struct {
	scrub   *keyspace.Scrub // of the background
	damage  string          // what was found to be wrong with the state, until it is repaired
	repairs int
}

// scrubAll compares all of the state with its digests, after a start.
func (r *Replica) scrubAll() {
	if _, _, ok := r.Store.Fetching(); ok {
		return // what is there is no state, and what is wrong is fetched
	}
	for x := r.Store.Scrub(); !x.Done(); {
		r.note(x.Step(math.MaxInt))
	}
}

// scrubSome goes on comparing, from one end to the other, again and again.
func (r *Replica) scrubSome() {
	if r.Fetching() || r.Tick%scrubTicks != 0 {
		return
	}
	if r.scrub == nil || r.scrub.Done() {
		r.scrub = r.Store.Scrub()
	}
	r.note(r.scrub.Step(scrubKeys))
}

func (r *Replica) note(found []keyspace.Damage) {
	if len(found) > 0 && r.damage == "" {
		r.damage = found[0].String()
	}
}

// compare looks whether this replica came to a stable checkpoint with the same state as the others.
func (r *Replica) compare(stable Checkpoint) {
	if m, ok := r.Store.At(uint64(stable.Seq)); ok && m.Digest() != stable.State && r.damage == "" {
		r.damage = fmt.Sprintf("the state of checkpoint %d is %v here, %v elsewhere", stable.Seq, m.Digest(), stable.State)
	}
}

// Repair goes back to the stable checkpoint if something is wrong with the state: it fetches what
// differs, and what came after is to be executed again. It reports whether a state is being
// fetched, for this reason or another. A protocol calls it before it executes or commits a batch.
func (r *Replica) Repair(env *protocol.Env[bft.Message]) bool {
	if r.damage == "" || r.Fetching() {
		return r.Fetching()
	}
	r.scrubAll() // a Fetch reads the tree of digests, which a Scrub mends where it is damaged
	env.Send(protocol.App, bft.Repairing{Reason: r.damage})
	r.damage = ""
	r.repairs++
	r.DropLayers()
	r.beginFetch()
	return true
}

package pbft

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

// scrubAll compares all of the state with its digests, after a start.
func (r *replica) scrubAll() {
	if _, _, ok := r.state.Fetching(); ok {
		return // what is there is no state, and what is wrong is fetched
	}
	for x := r.state.Scrub(); !x.Done(); {
		r.note(x.Step(math.MaxInt))
	}
}

// scrubSome goes on comparing, from one end to the other, again and again.
func (r *replica) scrubSome() {
	if r.fetch != nil || r.tick%scrubTicks != 0 {
		return
	}
	if r.scrub == nil || r.scrub.Done() {
		r.scrub = r.state.Scrub()
	}
	r.note(r.scrub.Step(scrubKeys))
}

func (r *replica) note(found []keyspace.Damage) {
	if len(found) > 0 && r.damage == "" {
		r.damage = found[0].String()
	}
}

// compare looks whether this replica came to a stable checkpoint with the same state as the others.
func (r *replica) compare(stable checkpointBody) {
	if m, ok := r.state.At(uint64(stable.Seq)); ok && m.Digest() != stable.State && r.damage == "" {
		r.damage = fmt.Sprintf("the state of checkpoint %d is %v here, %v elsewhere", stable.Seq, m.Digest(), stable.State)
	}
}

// repair fetches what differs from the stable checkpoint, and executes again what came after it. A
// Fetch reads the tree of digests, which a Scrub mends where it is damaged.
func (r *replica) repair(env *protocol.Env[bft.Message]) {
	r.scrubAll()
	env.Send(protocol.App, bft.Repairing{Reason: r.damage})
	r.damage = ""
	r.repairs++
	r.dropLayers()
	r.beginFetch()
}

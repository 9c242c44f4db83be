package bench

import (
	"time"

	"github.com/foresay/foresay/smr"
)

// acks are what a call of a replicated service waits for, of what all protocols have.
func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }

// syncTime is what a sync of a disk takes in virtual time, where it is modelled.
const syncTime = time.Millisecond

func durableName(durable bool) string {
	if durable {
		return "yes"
	}
	return "no"
}

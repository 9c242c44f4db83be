package replicated

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// statusWithin is how long all replicas have to answer: their answers wait for what they are
// writing.
const statusWithin = time.Second

// ask asks each replica for its status, and waits until all have answered. All are up.
func (c *cluster) ask(each func(protocol.ID, smr.Status)) {
	missing := len(c.replicas)
	c.status = func(id protocol.ID, s smr.Status) {
		missing--
		each(id, s)
	}
	for _, id := range c.replicas {
		c.sim.Deliver(id, smr.StatusQuery{})
	}
	if err := c.sim.RunUntil(statusWithin, func() bool { return missing == 0 }); err != nil {
		c.fail("%v", err)
	}
	c.status = nil
}

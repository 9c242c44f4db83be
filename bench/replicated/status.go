package replicated

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// ask asks each replica that is up for its status. Nothing else happens meanwhile.
func (c *cluster) ask(each func(protocol.ID, smr.Status)) {
	c.status = each
	for _, id := range c.replicas {
		c.sim.Deliver(id, smr.StatusQuery{})
	}
	if err := c.sim.Run(0); err != nil {
		c.fail("%v", err)
	}
	c.status = nil
}

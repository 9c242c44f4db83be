package sim

// A Chain is the causal path that led to an event: the messages and timers of which each was sent,
// or set, in the course of the one before, from a message of an application on. What waits for
// several things goes on in the course of the last of them, so the chain that ends with an answer
// to a call is what that answer has waited for.
type Chain struct {
	// Call is with which call of Deliver it began, counted from 1; 0: with none, as with the start of
	// a node.
	Call uint64
	// Hops is how many of its messages went from one site to another.
	Hops int
}

// Chain returns that of the event that is carried out, for Config.App. Outside of events it is the
// zero one.
func (s *Sim[M]) Chain() Chain { return s.chain }

// Delivered returns how often Deliver was called.
func (s *Sim[M]) Delivered() uint64 { return s.delivered }

// sent returns the chain of a message that is sent to another site, or not.
func (c Chain) sent(elsewhere bool) Chain {
	if elsewhere {
		c.Hops++
	}
	return c
}

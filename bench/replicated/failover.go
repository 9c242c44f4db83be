package replicated

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// Gap is what a leader's death cost.
type Gap struct {
	// All is the longest time, from the last answer before the death on, in which no client was answered. One is the longest in which some client was not, of
	// those that ask all the time.
	All, One time.Duration
	// Acknowledged writes, and how many of them were not in the state at the end.
	Acknowledged, Lost int
}

// Failover kills the leader of a setting once, in the middle of the clients' calls, and looks what came of it. The leader comes back later with its disk.
func Failover(s Setting) (Gap, error) {
	c, err := newCluster(s)
	if err != nil {
		return Gap{}, err
	}
	if err := c.warm(); err != nil {
		return Gap{}, err
	}
	w := watch{cluster: c, last: map[*caller]time.Duration{}}
	c.done = w.answered
	const before, after = 2 * time.Second, 4 * time.Second
	begin := c.sim.Now()
	c.start(begin + before + after)
	if err := c.pass(before + time.Duration(c.rand.Int64N(int64(time.Second)))); err != nil {
		return Gap{}, err
	}
	w.since(c.sim.Now())
	c.sim.Crash(c.leader(), sim.KeepNone)
	if err := c.pass(after); err != nil {
		return Gap{}, err
	}
	w.end()
	for _, id := range c.replicas {
		c.sim.Restart(id)
	}
	if err := c.pass(10 * time.Second); err != nil {
		return Gap{}, err
	}
	w.gap.Acknowledged = len(w.keys)
	w.gap.Lost = c.missing(w.keys)
	return w.gap, c.err
}

// leader returns the replica that says that it leads, the first one if none does.
func (c *cluster) leader() protocol.ID {
	var leader protocol.ID
	c.ask(func(id protocol.ID, s smr.Status) {
		if s.Role == "leader" {
			leader = id
		}
	})
	return max(leader, 1)
}

// watch notes how long nobody was answered.
type watch struct {
	*cluster
	from time.Duration // when the leader died; 0 before
	any  time.Duration // the last answer
	last map[*caller]time.Duration
	keys []string // acknowledged
	gap  Gap
}

func (w *watch) answered(cl *caller, call call) {
	now := w.sim.Now()
	if w.from > 0 {
		w.gap.All = max(w.gap.All, now-w.any)
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.any, w.last[cl] = now, now
	w.keys = append(w.keys, call.key)
}

func (w *watch) since(t time.Duration) { w.from = t }

// end counts those that were not answered until now.
func (w *watch) end() {
	now := w.sim.Now()
	w.gap.All = max(w.gap.All, now-w.any)
	for _, cl := range w.clients {
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.from = 0
}

// missing returns how many keys are not in the state of some replica. All have had time to become equal.
func (c *cluster) missing(keys []string) int {
	lost := 0
	for _, key := range keys {
		for _, id := range c.replicas {
			if !c.stores[id].has(key) {
				lost++
				break
			}
		}
	}
	if lost > 0 {
		c.fail("%d of %d acknowledged writes are not in the state of all replicas", lost, len(keys))
	}
	return lost
}

func (g Gap) String() string {
	return fmt.Sprintf("nobody answered for %v, somebody not for %v, %d of %d writes lost", g.All, g.One, g.Lost, g.Acknowledged)
}

package replicated

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// Gap is what a replica's death cost.
type Gap struct {
	// Role is what the replica said that it was, in the protocol's words.
	Role string
	// All is the longest time, from the last answer before the death on, in which no client was
	// answered. One is the longest in which some client was not, of those that ask all the time.
	All, One time.Duration
	// Acknowledged writes, and how many of them were not in the state of some replica at the end.
	Acknowledged, Lost int
}

// A Victim is which replica is killed.
type Victim uint8

const (
	// Leader is the one that leads at that moment. There is none if the protocol has none.
	Leader Victim = iota
	// Other is one that does not lead: each of them, by the seed.
	Other
)

// Times of a failover.
const (
	beforeDeath = time.Second     // and up to a second more, by chance
	afterDeath  = 3 * time.Second // clients call all the time
	recovery    = 10 * time.Second
)

// Failover kills a replica of a setting once, in the middle of the clients' calls, and looks what
// came of it. The replica comes back later with its disk. Each call must have a key of its own.
func Failover(s Setting, v Victim) (Gap, error) {
	c, err := newCluster(s)
	if err != nil {
		return Gap{}, err
	}
	if err := c.warm(); err != nil {
		return Gap{}, err
	}
	w := watch{cluster: c, last: map[*caller]time.Duration{}}
	c.done = w.answered
	begin := c.Now()
	c.start(begin + beforeDeath + time.Second + afterDeath) // until nobody looks any more: else the end would be a gap
	if err := c.Pass(beforeDeath + time.Duration(c.rand.Int64N(int64(time.Second)))); err != nil {
		return Gap{}, err
	}
	victim, role := c.victim(v)
	if err := c.Err(); err != nil {
		return Gap{}, err
	}
	w.gap.Role, w.from = role, c.Now()
	c.Crash(victim, sim.KeepNone)
	if err := c.Pass(afterDeath); err != nil {
		return Gap{}, err
	}
	w.end()
	c.Restart(victim)
	for since := c.Now(); ; {
		if err := c.Pass(time.Second); err != nil {
			return Gap{}, err
		}
		if w.gap.Lost = c.missing(w.keys); w.gap.Lost == 0 || c.Now()-since >= recovery {
			break
		}
	}
	if w.gap.Acknowledged = len(w.keys); w.gap.Lost > 0 {
		c.fail("%d of %d acknowledged writes are not in the state of all replicas", w.gap.Lost, len(w.keys))
	}
	return w.gap, c.Err()
}

// victim returns the replica that is to be killed, and its role.
func (c *cluster) victim(v Victim) (protocol.ID, string) {
	leaders, others, roles := []protocol.ID{}, []protocol.ID{}, map[protocol.ID]string{}
	c.ask(func(id protocol.ID, s smr.Status) {
		roles[id] = s.Role
		if s.Leader == id {
			leaders = append(leaders, id)
		} else {
			others = append(others, id)
		}
	})
	from := others
	if v == Leader {
		from = leaders
	}
	if len(from) == 0 {
		c.fail("there is no such replica to be killed; the roles are %v", roles)
		return 0, ""
	}
	id := from[c.Seed%uint64(len(from))]
	return id, roles[id]
}

// watch notes how long nobody was answered.
type watch struct {
	*cluster
	from time.Duration // when the replica died; 0 before, and after the end
	any  time.Duration // the last answer
	last map[*caller]time.Duration
	keys []string // acknowledged
	gap  Gap
}

func (w *watch) answered(cl *caller, call call) {
	now := w.Now()
	if w.from > 0 {
		w.gap.All = max(w.gap.All, now-w.any)
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.any, w.last[cl] = now, now
	w.keys = append(w.keys, call.key)
}

// end counts those that were not answered until now.
func (w *watch) end() {
	now := w.Now()
	w.gap.All = max(w.gap.All, now-w.any)
	for _, cl := range w.callers {
		w.gap.One = max(w.gap.One, now-w.last[cl])
	}
	w.from = 0
}

// missing returns how many keys are not in the state of some replica.
func (c *cluster) missing(keys []string) int {
	lost := 0
	for _, key := range keys {
		for _, m := range c.Members {
			if !c.stores[m.ID].has(key) {
				lost++
				break
			}
		}
	}
	return lost
}

func (g Gap) String() string {
	return fmt.Sprintf("%s killed: nobody answered for %v, somebody not for %v, %d of %d writes lost", g.Role, g.All,
		g.One, g.Lost, g.Acknowledged)
}

package sim

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Pause makes a node stand still for a time, as a garbage collection or a stopped machine does:
// messages, timers and the news from its disk wait. Its clock goes on, unless it is frozen as that
// of a stopped machine. Of two pauses at once, the later end counts; Resume ends them all.
func (s *Sim[M]) Pause(id protocol.ID, d time.Duration, frozen bool) {
	n := s.lookup(id)
	if n == nil || n.node == nil || d <= 0 {
		return
	}
	if n.paused {
		d = max(d, n.until-s.now)
	}
	s.trace.note(s, n, fmt.Sprintf("stands still for %v", d))
	if frozen {
		n.clock.jump(min(0, max(n.until, s.now)-s.now-d))
	}
	n.paused, n.until = true, s.now+d
	n.pauses++
	s.add(d, event[M]{kind: evResume, node: n.index, n: n.pauses})
}

// Resume ends a node's pauses.
func (s *Sim[M]) Resume(id protocol.ID) {
	n := s.lookup(id)
	if n == nil || !n.paused || n.until <= s.now {
		return
	}
	n.until = s.now
	n.pauses++
	s.add(0, event[M]{kind: evResume, node: n.index, n: n.pauses})
}

// resume takes up what waited, one after the other, before all that comes later.
func (s *Sim[M]) resume(n *node[M]) {
	if len(n.backlog) == 0 {
		n.paused, n.backlog = false, nil
		return
	}
	pause := n.pauses
	i := n.backlog[0]
	n.backlog = n.backlog[1:]
	s.hand(n, i)
	if n.paused {
		s.add(0, event[M]{kind: evResume, node: n.index, n: pause})
	}
}

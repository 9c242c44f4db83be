package sim

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// Cut makes one direction between two nodes lose what is sent. What has left arrives. A direction
// that was cut twice has to be mended twice.
func (s *Sim[M]) Cut(from, to protocol.ID) {
	a, b := s.lookup(from), s.lookup(to)
	if a == nil || b == nil || a == b {
		return
	}
	s.trace.note(s, a, fmt.Sprintf("its link to %d is cut", to))
	s.link(a, b).cuts++
}

// Mend undoes a Cut. The receiver learns whether it missed something.
func (s *Sim[M]) Mend(from, to protocol.ID) {
	a, b := s.lookup(from), s.lookup(to)
	if a == nil || b == nil || s.link(a, b).cuts == 0 {
		return
	}
	s.trace.note(s, a, fmt.Sprintf("its link to %d is mended", to))
	s.link(a, b).cuts--
	s.tellGap(a, b)
}

// Partition cuts all links between nodes of different groups, in both directions. Nodes in no group
// keep all their links.
func (s *Sim[M]) Partition(groups ...[]protocol.ID) { s.eachPair(groups, s.Cut) }

// Reunite undoes a Partition with the same groups.
func (s *Sim[M]) Reunite(groups ...[]protocol.ID) { s.eachPair(groups, s.Mend) }

func (s *Sim[M]) eachPair(groups [][]protocol.ID, f func(from, to protocol.ID)) {
	for i, g := range groups {
		for j, h := range groups {
			if i == j {
				continue
			}
			for _, from := range g {
				for _, to := range h {
					f(from, to)
				}
			}
		}
	}
}

// Reset breaks the connection from one node to another: what is under way that way is lost. A
// network of datagrams has none.
func (s *Sim[M]) Reset(from, to protocol.ID) {
	a, b := s.lookup(from), s.lookup(to)
	if a == nil || b == nil || a == b || s.datagrams != nil {
		return
	}
	s.trace.note(s, a, fmt.Sprintf("its connection to %d is reset", to))
	l := s.link(a, b)
	l.serial++
	l.last, l.gap = 0, true
	s.tellGap(a, b)
}

// Arrival returns when the last of all that is under way on streams arrives, Now if nothing is. A
// segment that was lost several times on a link that is right again is sent after its last timeout
// only, and everything behind it waits.
func (s *Sim[M]) Arrival() time.Duration {
	last := s.now
	for i := range s.net.links {
		for j := range s.net.links[i] {
			last = max(last, s.net.links[i][j].last)
		}
	}
	return last
}

// Link returns the present link between two sites, and whether the network has both.
func (s *Sim[M]) Link(p wan.Path) (wan.Link, bool) {
	from, ok := s.net.site(p.From)
	to, ok2 := s.net.site(p.To)
	if !ok || !ok2 {
		return wan.Link{}, false
	}
	return s.net.sites[from][to].link, true
}

// SetLink changes the link between two sites for what is sent from now on. It fails if the network
// lacks one of them or a value is out of range.
func (s *Sim[M]) SetLink(p wan.Path, l wan.Link) error {
	from, ok := s.net.site(p.From)
	to, ok2 := s.net.site(p.To)
	if !ok || !ok2 {
		return fmt.Errorf("sim: set link %v: not among the sites %q", p, s.net.names)
	}
	if err := l.Validate(); err != nil {
		return fmt.Errorf("sim: set link %v: %w", p, err)
	}
	s.trace.note(s, nil, fmt.Sprintf("link %v is now %+v", p, l))
	s.setLink(&s.net.sites[from][to], l)
	s.tellGaps()
	return nil
}

// setLink changes a link, with what schedules say about it. Somebody has to call tellGaps
// afterwards.
func (s *Sim[M]) setLink(r *route, l wan.Link) {
	r.set, r.link = l, l
	for _, schedule := range s.schedules {
		r.link = schedule.Link(r.path, r.link, s.now)
	}
}

// Apply makes a schedule's faults happen, until Heal. It fails if the schedule does not fit
// Config.WAN.
func (s *Sim[M]) Apply(schedule wan.Schedule) error {
	if err := schedule.Validate(s.config.WAN); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	s.schedules = append(s.schedules, &schedule)
	s.relink()
	for _, at := range schedule.Changes() {
		if at > s.now {
			s.At(at, s.relink)
		}
	}
	return nil
}

// relink looks up in the schedules what all links are now.
func (s *Sim[M]) relink() {
	for i := range s.net.sites {
		for j := range s.net.sites[i] {
			r := &s.net.sites[i][j]
			before := r.link
			s.setLink(r, r.set)
			if r.link != before {
				s.trace.note(s, nil, fmt.Sprintf("link %v is now %+v", r.path, r.link))
			}
		}
	}
	s.tellGaps()
}

// tellGaps tells all nodes what they missed, as far as their links are up.
func (s *Sim[M]) tellGaps() {
	for _, a := range s.nodes {
		for _, b := range s.nodes {
			s.tellGap(a, b)
		}
	}
}

package plan

import (
	"iter"

	"github.com/foresay/foresay/wan"
)

// neighbours returns the balanced placements that are one step from another one, each in the same
// memory: a partition that is led by another one of its copies, or two that exchange their leading
// sites; a copy that is at another site; two copies that change places.
func (c *climb) neighbours(p [][]wan.Site) iter.Seq[[][]wan.Site] {
	return func(yield func([][]wan.Site) bool) {
		q := clonePlacement(p)
		try := func() bool { return !c.balanced(q) || yield(q) }
		for k, at := range q {
			for i := range at {
				if i > 0 {
					at[0], at[i] = at[i], at[0]
					ok := try() && c.otherLeads(q, k, try)
					at[0], at[i] = at[i], at[0]
					if !ok {
						return
					}
				}
				if !c.moves(q, k, i, try) {
					return
				}
			}
		}
	}
}

// otherLeads has one of the later partitions be led by another one of its copies, too: alone,
// neither may be balanced.
func (c *climb) otherLeads(q [][]wan.Site, k int, try func() bool) bool {
	for _, at := range q[k+1:] {
		for i := 1; i < len(at); i++ {
			at[0], at[i] = at[i], at[0]
			ok := try()
			at[0], at[i] = at[i], at[0]
			if !ok {
				return false
			}
		}
	}
	return true
}

// moves has a copy be at another site, and be exchanged with each copy of later partitions.
func (c *climb) moves(q [][]wan.Site, k, i int, try func() bool) bool {
	at, old := q[k], q[k][i]
	for _, s := range c.Among {
		at[i] = s
		if ok := s == old || try(); !ok {
			at[i] = old
			return false
		}
	}
	at[i] = old
	for _, other := range q[k+1:] {
		for j := range other {
			at[i], other[j] = other[j], at[i]
			ok := try()
			at[i], other[j] = other[j], at[i]
			if !ok {
				return false
			}
		}
	}
	return true
}

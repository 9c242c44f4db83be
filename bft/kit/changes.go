package kit

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// Changes are what members have said when they gave a view up, the newest of each: B is a
// protocol's VIEW-CHANGE.
type Changes[B any] struct {
	dir *Epoch
	of  map[protocol.ID]bft.Signed[B]
	// to returns the view to which one wants to change.
	to func(*B) bft.View
}

// NewChanges returns those of an epoch, of which nobody has said anything.
func NewChanges[B any](dir *Epoch, to func(*B) bft.View) Changes[B] {
	return Changes[B]{dir, map[protocol.ID]bft.Signed[B]{}, to}
}

// Take keeps a member's word, and reports whether it is a member's and newer than its last one.
func (c *Changes[B]) Take(s bft.Signed[B]) bool {
	i := slices.IndexFunc(c.dir.Members, func(m bft.Party) bool { return s.By(m.Key) })
	if i < 0 {
		return false
	}
	id := c.dir.Members[i].ID
	if was, ok := c.of[id]; ok && c.to(was.Body()) >= c.to(s.Body()) {
		return false
	}
	c.of[id] = s
	return true
}

// For returns the words of members that want a view, in the members' order.
func (c *Changes[B]) For(v bft.View) (out []bft.Signed[B]) {
	for _, m := range c.dir.Members {
		if s, ok := c.of[m.ID]; ok && c.to(s.Body()) == v {
			out = append(out, s)
		}
	}
	return out
}

// Gone returns how many members have given up all views below one. Some may be further: they do not
// wait for that view any more, and nobody is to wait for them.
func (c *Changes[B]) Gone(v bft.View) (n int) {
	for _, m := range c.dir.Members {
		if s, ok := c.of[m.ID]; ok && c.to(s.Body()) >= v {
			n++
		}
	}
	return n
}

// Pulled returns the lowest view above one that a member wants, if so many want such views that one
// of them does not lie.
func (c *Changes[B]) Pulled(v bft.View) (bft.View, bool) {
	var ahead []bft.View
	for _, m := range c.dir.Members {
		if s, ok := c.of[m.ID]; ok && c.to(s.Body()) > v {
			ahead = append(ahead, c.to(s.Body()))
		}
	}
	if len(ahead) >= c.dir.Witness() {
		return slices.Min(ahead), true
	}
	return 0, false
}

// Forget removes what is over when a view has begun.
func (c *Changes[B]) Forget(v bft.View) {
	maps.DeleteFunc(c.of, func(_ protocol.ID, s bft.Signed[B]) bool { return c.to(s.Body()) <= v })
}

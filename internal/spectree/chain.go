package spectree

// chain is a lane's past as a list, newest first: the calls with side effects that it made, or its
// calls on ordered sites. Chains are interned: two runs with the same past hold the same pointer,
// so a past can be part of a key, and is compared in one step.
type chain struct {
	prev  *chain
	join  *chain // a joined lane's chain, in place of call
	call  *Call
	joins *chain // one that joins this one
	next  *chain // another one that ends with the same call, or joins the same chain
	done  bool   // invariant: every call up to here is answered or dead
	seen  int    // the last walk that came here
	// answeredAt is when the last call up to here was answered, if all are, as far as a walk found
	// that out; 0 else.
	answeredAt int32
	// kept is the chain without the calls of shared lanes, when so many were known
	// to be shared.
	kept   *chain
	keptAt int32
}

// push returns the interned successor of n, which may be nil, by a call.
func (n *chain) push(c *Call) *chain {
	for m := c.chains; m != nil; m = m.next {
		if m.prev == n {
			return m
		}
	}
	c.chains = &chain{prev: n, call: c, next: c.chains}
	return c.chains
}

// pushJoin returns the interned successor of n, which may be nil, by a joined
// lane's chain.
func (n *chain) pushJoin(join *chain) *chain {
	for m := join.joins; m != nil; m = m.next {
		if m.prev == n {
			return m
		}
	}
	join.joins = &chain{prev: n, join: join, next: join.joins}
	return join.joins
}

// blocker returns an unanswered call of the chain, other than c, whose conflict
// key is not disjoint from conflict, or nil.
func (t *Tree) blocker(n *chain, c *Call, conflict string) *Call {
	return t.blockerBut(n, c, conflict, nil)
}

// blockerBut is blocker without the calls for which but, if it is not nil, returns true.
func (t *Tree) blockerBut(n *chain, c *Call, conflict string, but func(*Call) bool) *Call {
	if n == nil || n.done || !t.unanswered.conflict(c, conflict) {
		return nil
	}
	t.walks++
	found, _ := n.walk(c, conflict, t.walks, but)
	return found
}

// walk looks at every part of the chain once, however often lanes that began
// with it were joined. It also reports whether all of it is done.
func (n *chain) walk(of *Call, conflict string, walk int, but func(*Call) bool) (found *Call, done bool) {
	done = true
	m := n
	for ; m != nil && !m.done && m.seen != walk; m = m.prev {
		m.seen = walk
		if m.join != nil {
			c, all := m.join.walk(of, conflict, walk, but)
			if c != nil {
				return c, false
			}
			done = done && all
			continue
		}
		if m.call.answered || m.call.dead {
			continue
		}
		done = false
		if m.call != of && !disjoint(m.call.spec.Conflict, conflict) && !sameDomain(m.call, of) &&
			(but == nil || !but(m.call)) {
			return m.call, false
		}
	}
	if m != nil && !m.done {
		done = false // somebody else is looking
	}
	n.done = done
	return nil, done
}

// any reports whether the function returns true for a call of the chain.
func (n *chain) any(walk int, is func(*Call) bool) bool {
	for ; n != nil && n.seen != walk; n = n.prev {
		n.seen = walk
		if n.join != nil && n.join.any(walk, is) || n.join == nil && is(n.call) {
			return true
		}
	}
	return false
}

// disjoint reports whether two conflict keys say that their calls commute. The
// empty key conflicts with all.
func disjoint(a, b string) bool { return a != "" && b != "" && a != b }

// sameDomain reports whether their callee keeps two calls in order.
func sameDomain(c, o *Call) bool {
	return c != nil && o != nil && c.spec.Domain != nil && c.spec.Domain == o.spec.Domain
}

// tally counts the calls in chains that are not answered, so that a call that
// commutes with all of them need not look at each.
type tally struct {
	all, unkeyed int
	counts       map[counted]int
}

// counted is what calls have in common: a conflict key, or a domain.
type counted struct {
	conflict string
	domain   *Domain
}

// count adds the call, once.
func (y *tally) count(c *Call) {
	if c.counted || c.answered || c.dead {
		return
	}
	c.counted = true
	y.add(c, 1)
}

// forget takes the call away: it is answered, or abandoned.
func (y *tally) forget(c *Call) {
	if c.counted {
		c.counted = false
		y.add(c, -1)
	}
}

func (y *tally) add(c *Call, n int) {
	y.all += n
	if d := c.spec.Domain; d != nil {
		y.addTo(counted{domain: d}, n)
	}
	if key := c.spec.Conflict; key == "" {
		y.unkeyed += n
	} else {
		y.addTo(counted{conflict: key}, n)
	}
}

func (y *tally) addTo(what counted, n int) {
	if y.counts == nil {
		y.counts = make(map[counted]int)
	}
	if y.counts[what] += n; y.counts[what] == 0 {
		delete(y.counts, what)
	}
}

// conflict reports whether there is a call other than c whose conflict key is
// not disjoint from key.
func (y *tally) conflict(c *Call, key string) bool {
	n := y.all
	if d := c.spec.Domain; d != nil && y.counts[counted{domain: d}] == n {
		return false
	}
	if key != "" {
		n = y.unkeyed + y.counts[counted{conflict: key}]
	}
	if c.counted && !disjoint(c.spec.Conflict, key) {
		n--
	}
	return n > 0
}

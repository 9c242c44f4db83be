package spectree

// key is what makes two runs' calls the same call: who made it, what it asks,
// which of several equal ones it is, and which side effects preceded it.
type key struct {
	lane string
	op   string
	occ  int
	eff  *chain
	ord  *chain // if the call is ordered: which ordered ones preceded it
}

// record holds the calls of a task that a new run may use again.
type record struct {
	few   [4]*Call
	all   []*Call
	index map[key]*Call // built once all grows past a handful
	// confirmed holds the calls of which it is certain that the run that turns
	// out right makes them, by place; built once a replay asks.
	confirmed map[key]*Call
}

// place returns where in the program the call is made, whatever came before.
func (k key) place() key { return key{lane: k.lane, op: k.op, occ: k.occ} }

// confirmedAt returns the confirmed call at this place, or nil.
func (r *record) confirmedAt(k key) *Call {
	if r.confirmed == nil {
		r.confirmed = make(map[key]*Call)
		for _, c := range r.all {
			if c.Confirmed() {
				r.confirm(c)
			}
		}
	}
	return r.confirmed[k.place()]
}

// confirm tells that the call's caller is right.
func (r *record) confirm(c *Call) {
	if r.confirmed != nil && r.confirmed[c.key.place()] == nil {
		r.confirmed[c.key.place()] = c
	}
}

const recordScan = 8

func (r *record) find(k key) *Call {
	if r.index != nil {
		return r.index[k]
	}
	for _, c := range r.all {
		if c.key == k {
			return c
		}
	}
	return nil
}

func (r *record) add(c *Call) {
	if r.all == nil {
		r.all = r.few[:0]
	}
	c.slot = len(r.all)
	r.all = append(r.all, c)
	if r.index != nil {
		r.index[c.key] = c
		return
	}
	if len(r.all) > recordScan {
		r.index = make(map[key]*Call, 4*recordScan)
		for _, c := range r.all {
			r.index[c.key] = c
		}
	}
}

func (r *record) remove(c *Call) {
	if c.slot < 0 {
		return
	}
	last := len(r.all) - 1
	moved := r.all[last]
	r.all[c.slot] = moved
	moved.slot = c.slot
	r.all = r.all[:last]
	c.slot = -1
	if r.index != nil {
		delete(r.index, c.key)
	}
	if r.confirmed != nil && r.confirmed[c.key.place()] == c {
		delete(r.confirmed, c.key.place())
	}
}

// chain is a lane's past as a list, newest first: the calls with side effects
// that it made, or its calls on ordered sites. Chains are interned, so that two
// paths with the same past hold the same pointer.
type chain struct {
	prev  *chain
	join  *chain // a joined lane's chain, in place of call
	call  *Call
	joins []*chain // those that join this one
	done  bool     // invariant: every call up to here is answered or dead
	seen  int      // the last walk that came here
}

// push returns the interned successor of n, which may be nil, by a call.
func (n *chain) push(c *Call) *chain {
	for _, m := range c.chains {
		if m.prev == n {
			return m
		}
	}
	m := &chain{prev: n, call: c}
	c.chains = append(c.chains, m)
	return m
}

// pushJoin returns the interned successor of n, which may be nil, by a joined
// lane's chain.
func (n *chain) pushJoin(join *chain) *chain {
	for _, m := range join.joins {
		if m.prev == n {
			return m
		}
	}
	m := &chain{prev: n, join: join}
	join.joins = append(join.joins, m)
	return m
}

// blocker returns an unanswered call of the chain, other than c, whose conflict
// key is not disjoint from conflict, or nil.
func (t *Tree) blocker(n *chain, c *Call, conflict string) *Call {
	if n == nil || n.done {
		return nil
	}
	if conflict == "" && t.breaks(commuteUnkeyed) {
		conflict = "none"
	}
	t.walks++
	found, _ := n.walk(c, conflict, t.walks)
	return found
}

// walk looks at every part of the chain once, however often lanes that began
// with it were joined. It also reports whether all of it is done.
func (n *chain) walk(of *Call, conflict string, walk int) (found *Call, done bool) {
	done = true
	m := n
	for ; m != nil && !m.done && m.seen != walk; m = m.prev {
		m.seen = walk
		if m.join != nil {
			c, all := m.join.walk(of, conflict, walk)
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
		if m.call != of && !disjoint(m.call.spec.Conflict, conflict) {
			return m.call, false
		}
	}
	if m != nil && !m.done {
		done = false // somebody else is looking
	}
	n.done = done
	return nil, done
}

// disjoint reports whether two conflict keys say that their calls commute. The
// empty key conflicts with all.
func disjoint(a, b string) bool { return a != "" && b != "" && a != b }

// dep is a lane's past as the assumptions that it stands on, newest first.
type dep struct {
	prev *dep
	join *dep // a joined lane's assumptions, in place of call
	call *Call
}

// blocker returns a call whose answer the assumptions still wait for, or nil.
// It shortens the list as answers come, so that repeated walks are cheap.
func (d *dep) blocker() *Call {
	var found *Call
	n := d
	for ; n != nil; n = n.prev {
		if n.join != nil {
			if found = n.join.blocker(); found != nil {
				break
			}
			n.join = nil
		} else if n.call != nil && !n.call.answered && !n.call.dead {
			found = n.call
			break
		}
	}
	for m := d; m != nil && m != n; {
		next := m.prev
		m.prev = n
		m = next
	}
	return found
}

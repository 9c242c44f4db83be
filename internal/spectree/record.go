package spectree

// key is what makes two runs' calls the same call: who made it, what it asks,
// which of several equal ones it is, and which side effects preceded it.
type key struct {
	lane string
	op   string
	occ  int
	eff  *chain
}

// record holds the calls of a task that a new run may use again.
type record struct {
	few   [4]*Call
	all   []*Call
	index map[key]*Call // built once all grows past a handful
	// rootNext are the interned chains of length one.
	rootNext []*chain
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
}

// chain is a lane's past as a list, newest first: the calls with side effects
// that it made, or its calls on ordered sites. Chains of side effects are
// interned, so that two paths with the same effects hold the same pointer.
type chain struct {
	prev *chain
	join *chain // a joined lane's chain, in place of call
	call *Call
	next []*chain // interned successors
	done bool     // invariant: every call up to here is answered
}

// push returns the interned successor of n.
func (t *Tree) push(n *chain, c *Call, join *chain) *chain {
	list := &t.record.rootNext
	if n != nil {
		list = &n.next
	}
	for _, m := range *list {
		if m.call == c && m.join == join {
			return m
		}
	}
	m := &chain{prev: n, call: c, join: join}
	*list = append(*list, m)
	return m
}

// blocker returns an unanswered call of the chain whose conflict key is not
// disjoint from conflict, or nil.
func (n *chain) blocker(conflict string) *Call {
	all := true
	for m := n; m != nil && !m.done; m = m.prev {
		if m.join != nil {
			if c := m.join.blocker(conflict); c != nil {
				return c
			}
			all = all && m.join.done
			continue
		}
		if m.call.answered {
			continue
		}
		all = false
		if !disjoint(m.call.spec.Conflict, conflict) {
			return m.call
		}
	}
	if n != nil && all {
		n.done = true
	}
	return nil
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
		} else if n.call != nil && !n.call.answered {
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

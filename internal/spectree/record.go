package spectree

// key is what makes two runs' calls the same call: who made it, what it asks,
// which of several equal ones it is, and which side effects preceded it.
type key struct {
	lane    string
	op      string
	occ     int
	variant int
	eff     *chain
	ord     *chain // if the call is ordered: which ordered ones preceded it, see orderOf
}

// record holds the calls of a task that a new run may use again.
type record struct {
	few [4]*Call
	all []*Call
	// variants is the highest CallSpec.Variant so far.
	variants int32
	twins    bool          // some calls have, or had, one key or one place
	index    map[key]*Call // built once all grows past a handful
	// confirmed holds the calls of which it is certain that the run that turns
	// out right makes them, by place; built once a replay asks.
	confirmed map[key]*Call
}

// place returns where in the program the call is made, whatever came before and
// in whichever variant.
func (k key) place() key { return key{lane: k.lane, op: k.op, occ: k.occ} }

// confirmedAt returns the confirmed call at this place, or nil.
func (r *record) confirmedAt(k key) *Call {
	if r.confirmed == nil {
		r.confirmed = make(map[key]*Call)
		for _, c := range r.all {
			r.confirm(c)
		}
	}
	return r.confirmed[k.place()]
}

// confirm tells that the call's caller may be right by now.
func (r *record) confirm(c *Call) {
	if r.confirmed != nil && c.Confirmed() {
		r.twins = !claim(r.confirmed, c.key.place(), c) || r.twins
	}
}

// claim has the call be what is found under the key, and reports false if another one is.
func claim(m map[key]*Call, k key, c *Call) bool {
	if o := m[k]; o != nil && o != c {
		return false
	}
	m[k] = c
	return true
}

// Recorded reports whether a call that the lane is about to make is sure to be
// one that was sent already: predictions for it are of no use. It looks where
// that is often so, at what replays make of calls without side effects.
func (t *Tree) Recorded(l *Lane, s *CallSpec) bool {
	if l.run.ID == 1 || s.Effect != None || s.Ordered || s.Once || s.Local {
		return false
	}
	occ, _ := l.occurrence(s.Op)
	c := t.record.find(key{lane: l.id, op: s.Op, occ: occ, variant: s.Variant, eff: l.eff})
	return c != nil && c.send != unsent
}

// At returns a call that counts as right there: in this lane, as the occurrence-th of
// its operation from 0. nil: there is none yet.
func (t *Tree) At(lane string, s *CallSpec, occurrence int) *Call {
	return t.record.confirmedAt(keyAt(lane, s, occurrence))
}

func keyAt(lane string, s *CallSpec, occurrence int) key {
	if s.Once {
		return key{lane: onceLane, op: s.Op}
	}
	return key{lane: lane, op: s.Op, occ: occurrence}
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
	c.at = len(r.all)
	r.variants = max(r.variants, int32(c.key.variant))
	r.all = append(r.all, c)
	if r.index != nil {
		r.enter(c)
		return
	}
	if len(r.all) > recordScan {
		r.index = make(map[key]*Call, 4*recordScan)
		for _, c := range r.all {
			r.enter(c)
		}
	}
}

// enter has the call found by its key, and by its place if it is confirmed, unless another one is.
func (r *record) enter(c *Call) {
	if r.index != nil {
		r.twins = !claim(r.index, c.key, c) || r.twins
	}
	r.confirm(c)
}

// leave has the call, which is not in the list under this key any more, not be found by that.
// Another one that has the same key, or the same place, is found from now on.
func (r *record) leave(c *Call) {
	k := c.key
	at := r.index != nil && r.index[k] == c
	if at {
		delete(r.index, k)
	}
	place := r.confirmed != nil && r.confirmed[k.place()] == c
	if place {
		delete(r.confirmed, k.place())
	}
	if !r.twins || !at && !place {
		return
	}
	for _, o := range r.all {
		if o != c && (at && o.key == k || place && o.key.place() == k.place()) {
			r.enter(o)
		}
	}
}

// rekey changes the call's key: which ordered calls preceded it, say.
func (r *record) rekey(c *Call, k key) {
	if c.key == k {
		return
	}
	r.leave(c)
	c.key = k
	r.enter(c)
}

func (r *record) remove(c *Call) {
	if c.at < 0 {
		return
	}
	last := len(r.all) - 1
	moved := r.all[last]
	r.all[c.at] = moved
	moved.at = c.at
	r.all = r.all[:last]
	c.at = -1
	r.leave(c)
}

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

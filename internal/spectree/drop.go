package spectree

// Drop tells that the run gave up waiting for the call: its own context ended.
// A replay may be luckier, and take another path; if that path does not lead to
// what was done on the strength of the first one, the function counts as not
// deterministic.
func (t *Tree) Drop(u *Use) {
	if u.answer != Waiting || u.Run.discarded {
		return
	}
	c := u.Call
	if t.dropped == nil {
		t.dropped = make(map[key]struct{})
	}
	t.dropped[c.key.place()] = struct{}{}
	u.lane.done(u)
	u.answer = Actual
	if c.irrevocable() {
		u.consume(-1)
	}
	t.detach(u)
	if len(c.uses) == 0 && !c.dead && !c.irrevocable() && !c.settled {
		t.unorphan(c)
		t.abandon(c)
	}
	t.reconcile()
}

// tooLate reports whether the run, on its way to make c at this place, is on
// another path than an earlier run that was right: that one gave up waiting
// here, or made another call, and calls took effect since that this run has not
// made. An answer would come from after them.
func (t *Tree) tooLate(r *Run, k key, c *Call) bool {
	if _, gaveUp := t.dropped[k.place()]; !gaveUp {
		if o := t.record.confirmedAt(k); o == nil || o == c {
			return false
		}
	}
	for _, o := range t.sent.all {
		if !r.made(o) {
			return true
		}
	}
	return false
}

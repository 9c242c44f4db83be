package spectree

// What a call's answer is worth keeping for is a run that asks for it: now, or when it
// replays what another one did. So an answer is spent once all of this holds.
//
//   - No run can be started any more: one run is alive, which stands on no guess and
//     takes none, since it came to a barrier or the task is not replayable, and has made all
//     that took effect. One that has not may come to it under another lane's name, and then
//     another run takes its place, see taken.
//   - That run has the answer. A replay that passed a barrier in one lane may have yet
//     to come to a call of another.
//   - The call is not one that the run may make again, see CallSpec.Once.

// Last returns the run beside which, and in whose place, no other run will ever be
// started, or nil if that is not certain.
func (t *Tree) Last() *Run {
	if t.over || len(t.runs) != 1 {
		return nil
	}
	r := t.runs[0]
	if r.open == 0 && (r.pinned || !t.cfg.Replayable) && t.madeAll(r) {
		return r
	}
	return nil
}

// Uses yields what the run made, in order.
func (r *Run) Uses(yield func(*Use) bool) {
	for _, u := range r.uses {
		if !yield(u) {
			return
		}
	}
}

// Following yields what the run made after this, in order.
func (u *Use) Following(yield func(*Use) bool) {
	for _, next := range u.Run.uses[u.index+1:] {
		if !yield(next) {
			return
		}
	}
}

// Take tells that the code of the run has the call's answer, or what it took for that.
func (u *Use) Take() { u.taken = true }

// Spent reports whether no run will ask for the call's answer any more.
func (t *Tree) Spent(c *Call) bool {
	r := t.Last()
	if r == nil || !c.answered || c.spec.Once || c.spec.Local {
		return false
	}
	u := c.useOf(r)
	return u != nil && u.taken
}

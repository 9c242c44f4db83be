package spectree

// State is where a run, a call or what follows a call stands, in the paper's
// terms [SpecRPC §3.1, Figure 5].
type State uint8

// The states.
const (
	CalleeSpeculative State = iota // stands on a prediction of its own
	CallerSpeculative              // only its caller stands on one
	Correct                        // terminal
	Incorrect                      // terminal
)

// State returns the run's state. A run is a path through the paper's tree of
// callback objects: it is callee speculative while any of them is.
func (r *Run) State() State {
	switch {
	case r.discarded || r.tree.caller == CallerRefuted:
		return Incorrect
	case r.open > 0:
		return CalleeSpeculative
	case r.tree.caller == CallerOpen:
		return CallerSpeculative
	}
	return Correct
}

// State returns the call's state, that of the paper's RPC object: it is the
// caller's. Unlike there, a call whose callers were wrong may be adopted by one
// that is not.
func (c *Call) State() State {
	state := Incorrect
	if c.Confirmed() {
		return Correct
	}
	for _, u := range c.uses {
		switch {
		case u.Run.tree.caller == CallerConfirmed && u.dep.blocker() == nil:
			return Correct
		case u.Run.tree.caller != CallerRefuted:
			state = CallerSpeculative
		}
	}
	return state
}

// State returns the state of what the run does with the call's answer: that of
// the paper's callback object.
func (u *Use) State() State {
	switch {
	case u.Run.discarded:
		return Incorrect
	case u.answer >= 0 && !u.Call.answered:
		return CalleeSpeculative
	case u.Run.tree.caller == CallerConfirmed && u.dep.blocker() == nil:
		return Correct
	}
	return CallerSpeculative
}

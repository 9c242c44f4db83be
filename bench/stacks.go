package bench

// stacks returns the systems that are compared. The first is what the others are
// measured against.
func stacks(v variant) []stack {
	return []stack{grpcStack(), foresayOff(v), foresayDo(v), foresayThen(v)}
}

// sideBySide makes a trial of the load for each system.
func sideBySide(v variant, params []Cell, l load) []trial {
	var group []trial
	for _, s := range stacks(v) {
		group = append(group, trial{stack: s, params: params, load: l})
	}
	return group
}

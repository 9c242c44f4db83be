package bench

// stacks returns the systems that are compared. The first is what the others are
// measured against.
func stacks() []stack {
	return []stack{grpcStack()}
}

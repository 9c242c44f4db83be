package spectree

// Guessed yields the uses of runs that went on with a prediction for the call.
func (c *Call) Guessed(yield func(*Use) bool) {
	for _, u := range c.uses {
		if u.answer >= 0 && !u.Run.discarded && !yield(u) {
			return
		}
	}
}

package replicatedcommit

// WithoutDurableVotes returns a configuration whose servers forget their votes in a crash.
func WithoutDurableVotes(c Config) Config {
	c.skip |= ruleDurableVotes
	return c
}

// WithoutLocksAfterwards returns a configuration whose servers remember their votes after a crash, but not what these lock.
func WithoutLocksAfterwards(c Config) Config {
	c.skip |= ruleLocksSurvive
	return c
}

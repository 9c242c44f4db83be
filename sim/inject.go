package sim

// An injector makes faults happen by chance.
type injector[M any] struct{}

func (*injector[M]) next() {}

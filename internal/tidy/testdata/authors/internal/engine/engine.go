package engine

// Do does.
func Do() {}

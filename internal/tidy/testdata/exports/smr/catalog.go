package smr

// Find looks a protocol up; it is none.
func Find(name string) Protocol { return Protocol{} }

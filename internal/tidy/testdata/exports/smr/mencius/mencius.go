package mencius

import "example.com/tidy/smr"

func Protocol() smr.Protocol { return smr.Protocol{} }

type Replica struct{}

func (Replica) Check() error { return nil }

const (
	follower = iota
	Leader
)

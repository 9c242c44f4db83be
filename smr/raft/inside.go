package raft

import (
	"slices"

	"github.com/foresay/foresay/protocol"
)

// Term returns the term that the member is in. It may have heard of that from a candidate only.
func (p *Part[M]) Term() uint64 {
	if p.replica.Over() || p.replica.core.node == nil {
		return 0
	}
	return p.replica.core.term()
}

// StateIn is State of what is on the owner's disk, for tests and tools.
func (p *Part[M]) StateIn(disk protocol.Keys) protocol.Keys {
	return protocol.Prefixed(disk, slices.Concat(p.prefix, areaPrefix(p.replica.part.head.area)))
}

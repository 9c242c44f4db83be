package plan

import "time"

// LatencyOfCommit is what is left of Latency when all has been read: of keys that are not declared.
func LatencyOfCommit(s Setting, system System, client int, t Txn) (took time.Duration, fast bool) {
	v := newModel(s, system).at(client)
	o := v.outcome(t)
	return o.took - v.outcomeOfReads(t), o.fast
}

// outcomeOfReads is how long the reads take of a transaction of each system.
func (v *view) outcomeOfReads(t Txn) time.Duration {
	switch v.system {
	case ReplicatedCommit:
		return v.reads(t, toMajority)
	case Layered:
		return v.reads(t, atLeader)
	case CarouselBasic, CarouselFast:
		return v.reads(t, func(p part) time.Duration { return min(p.leader, p.majority) })
	}
	return v.reads(t, toNearest)
}

package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/wan"
)

// Measured is what a client knows of a store that runs: how far sites are from itself, not from
// each other.
type Measured struct {
	Trips     map[wan.Site]time.Duration // round trips; sites that did not answer are missing
	Placement [][]wan.Site               // the sites with a copy of each partition, in any order
	Leaders   map[int]wan.Site           // of partitions that somebody leads
}

// unknown is longer than any round trip.
const unknown = time.Duration(math.MaxInt64 / 4)

func (m Measured) trip(s wan.Site) time.Duration {
	if d, ok := m.Trips[s]; ok {
		return d
	}
	return unknown
}

// nearest returns the sites that have answered, the nearest first. That one is the client's own.
func (m Measured) nearest() (sites []wan.Site) {
	for s := range m.Trips { //pure:ok they are put in order
		sites = append(sites, s)
	}
	slices.SortFunc(sites, func(a, b wan.Site) int {
		return cmp.Or(cmp.Compare(m.Trips[a], m.Trips[b]), cmp.Compare(a, b))
	})
	return sites
}

// Floor returns what no protocol goes below for a transaction of the client that survives the loss
// of any site, and the transaction's class; false if too few sites have answered to tell.
func (m Measured) Floor(t Txn) (Class, time.Duration, bool) {
	near := m.nearest()
	if len(near) == 0 || len(t.Reads)+len(t.Writes) == 0 {
		return "", 0, false
	}
	safe := unknown
	if len(near) > 1 {
		safe = m.trip(near[1])
	}
	floor := floorOf(t, func(k int) part {
		at := m.Placement[k]
		copy := func(nth int) time.Duration {
			return delays.Kth(len(at), nth, func(i int) time.Duration { return m.trip(at[i]) })
		}
		p := part{nearest: copy(1), majority: copy(quorum.Majority(len(at)))}
		p.leader = p.majority
		if leader, ok := m.Leaders[k]; ok {
			p.leader = m.trip(leader)
		}
		return p
	}, safe)
	return Setting{Placement: m.Placement, Clients: []Client{{Site: near[0]}}}.ClassOf(0, t), floor, floor < unknown
}

// floorOf: a majority of each partition has to learn what conflicts with what; and of a transaction
// that writes, another site has to have what was written, which may depend on what was read. It is
// safe there after so long.
func floorOf(t Txn, of func(k int) part, safe time.Duration) time.Duration {
	longest := func(partitions []int, each func(p part) time.Duration) (d time.Duration) {
		for _, k := range partitions {
			d = max(d, each(of(k)))
		}
		return d
	}
	if len(t.Writes) == 0 {
		return longest(t.Reads, func(p part) time.Duration { return min(p.leader, p.majority) })
	}
	return max(longest(t.Reads, toMajority), longest(t.Writes, toMajority), longest(t.Reads, toNearest)+safe)
}

// CommitTrips returns how many wide-area round trips a commit of the system takes one after the
// other at most, if all answer: a part of one counts whole. fast says that its fast path was taken.
// It is 0 of what is no system.
func (s System) CommitTrips(t Txn, fast bool) int {
	readOnly, alone := len(t.Writes) == 0, len(t.Partitions()) == 1
	switch s {
	case ReplicatedCommit:
		return 1
	case Layered:
		if readOnly || alone {
			return 2 // to the leader, and from there to its majority
		}
		return 4 // and to what the first partition's decides
	case TAPIR:
		if fast {
			return 1
		}
		return 2
	case CarouselBasic, CarouselFast, CarouselDirect:
		switch {
		case readOnly, s == CarouselDirect && fast: // which is coordinated at the client's site
			return 1
		case s == CarouselBasic || s == CarouselFast && !fast:
			return 3 // to the leader, to its majority, to the coordinator and back
		}
		return 2
	case STR, ClockSIRep:
		if readOnly {
			return 1 // to a coordinator that may be elsewhere
		}
		if len(t.Reads) == 0 {
			return 3 // it begins by reading a key
		}
		return 2 // to the leader, and from there to the copies and back
	}
	return 0
}

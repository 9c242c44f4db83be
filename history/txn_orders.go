package history

import (
	"cmp"
	"slices"
	"time"
)

// addSessions adds the order of each client's transactions. Nothing comes after one with unknown
// outcome: it may take effect at any time later.
func (b *graphBuilder) addSessions() {
	byClient := make(map[Client][]int32)
	var clients []Client
	for t := range b.x.h.Txns {
		if !b.x.seen[t] {
			continue
		}
		client := b.x.h.Txns[t].Client
		if _, ok := byClient[client]; !ok {
			clients = append(clients, client)
		}
		byClient[client] = append(byClient[client], int32(t))
	}
	for _, client := range clients {
		session := byClient[client]
		slices.SortStableFunc(session, func(s, t int32) int {
			return cmp.Compare(b.x.h.Txns[s].Begin, b.x.h.Txns[t].Begin)
		})
		if b.sequential(session) {
			b.addSequence(session)
		} else { // a client that pipelines
			b.addTimes(session, edgeSession)
		}
	}
}

// sequential reports whether each transaction ended before the next began, or at that time.
func (b *graphBuilder) sequential(session []int32) bool {
	for i := 1; i < len(session); i++ {
		s, t := &b.x.h.Txns[session[i-1]], &b.x.h.Txns[session[i]]
		if s.Outcome == Returned && s.End > t.Begin {
			return false
		}
	}
	return true
}

func (b *graphBuilder) addSequence(session []int32) {
	previous := int32(-1)
	for _, t := range session {
		if previous >= 0 {
			b.add(edge{from: previous, to: t, kind: edgeSession})
		}
		if b.x.h.Txns[t].Outcome == Returned {
			previous = t
		}
	}
}

// addRealTime adds that a transaction ended before another began.
func (b *graphBuilder) addRealTime() {
	var txns []int32
	for t := range b.x.h.Txns {
		if b.x.seen[t] {
			txns = append(txns, int32(t))
		}
	}
	b.addTimes(txns, edgeTime)
}

// addTimes adds the order of intervals with a node for each time at which one ends, in a row: from
// each transaction to the time of its end, and from the last time before its beginning to each
// transaction.
func (b *graphBuilder) addTimes(txns []int32, kind edgeKind) {
	if b.kinds&kind == 0 {
		return
	}
	ended := slices.DeleteFunc(slices.Clone(txns), func(t int32) bool { return b.x.h.Txns[t].Outcome != Returned })
	slices.SortStableFunc(ended, func(s, t int32) int { return cmp.Compare(b.x.h.Txns[s].End, b.x.h.Txns[t].End) })
	begun := slices.Clone(txns)
	slices.SortStableFunc(begun, func(s, t int32) int { return cmp.Compare(b.x.h.Txns[s].Begin, b.x.h.Txns[t].Begin) })

	node := int32(-1)
	var at time.Duration // of node
	next := 0
	for _, t := range begun {
		for ; next < len(ended) && b.x.h.Txns[ended[next]].End < b.x.h.Txns[t].Begin; next++ {
			end := b.x.h.Txns[ended[next]].End
			if node < 0 || end > at {
				later := b.node()
				if node >= 0 {
					b.add(edge{from: node, to: later, kind: edgePass})
				}
				node, at = later, end
			}
			b.add(edge{from: ended[next], to: node, kind: kind})
		}
		if node >= 0 {
			b.add(edge{from: node, to: t, kind: edgePass})
		}
	}
}

package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// replacement is how far a shard is whose group replaces a member by the server of the last site.
type replacement struct {
	from   int
	done   bool
	reason string // why it is not yet
}

// join has the servers of the last site wait to be added to the groups of their shards.
func (w *World) join() {
	last := &w.Layout.Sites[len(w.Layout.Sites)-1]
	for k := range last.Shards {
		if last.Has(k) {
			last.Joins = append(last.Joins, k)
		}
	}
}

// replaceMembers asks all servers of each shard, again and again from some time on, to replace one
// of the group's first members.
func (w *World) replaceMembers(until time.Duration) {
	r := rand.New(rand.NewPCG(w.Scenario.Seed, 13))
	w.replaced = map[int]*replacement{}
	to := len(w.Layout.Sites) - 1
	for _, k := range w.Layout.Sites[to].Joins {
		sites := w.Layout.HoldersOf(k)
		one := &replacement{from: sites[r.IntN(len(sites))]}
		w.replaced[k] = one
		w.Sim.At(time.Duration(r.Int64N(int64(until)*2/3)), func() { w.replaceOne(k, one) })
	}
}

func (w *World) replaceOne(shard int, one *replacement) {
	if one.done {
		return
	}
	for _, i := range w.Layout.SitesOf(shard) {
		w.Sim.Deliver(w.Layout.Sites[i].Shards[shard], store.Replace{From: one.from, To: len(w.Layout.Sites) - 1})
	}
	w.Sim.After(3*RoundTrip, func() { w.replaceOne(shard, one) })
}

func (w *World) onReplacing(from protocol.ID, m store.Replacing) {
	shards, _ := w.Layout.Places()
	if one := w.replaced[shards[from].Index]; one != nil && m.Leads {
		one.done, one.reason = one.done || m.Done, m.Reason
	}
}

// holding returns the layout without servers that hold nothing, or not for sure what others do:
// those that wait to be members of their groups, and those that were.
func (w *World) holding() store.Layout {
	l := w.Layout
	if len(w.replaced) == 0 {
		return l
	}
	l.Sites = slices.Clone(l.Sites)
	for k, one := range w.replaced {
		site := one.from
		if !one.done {
			site = len(l.Sites) - 1
		}
		l.Sites[site].Shards = slices.Clone(l.Sites[site].Shards)
		l.Sites[site].Shards[k] = 0
	}
	return l
}

package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// Inject has faults strike servers and coordinators.
func (w *World) Inject() error {
	if w.Scenario.Faults == 0 {
		return nil
	}
	return w.Sim.Inject(sim.Profile{Faults: w.Scenario.Faults, Nodes: w.Nodes(), MaxDown: 3, Every: 300 * time.Millisecond,
		Lasting: 600 * time.Millisecond})
}

// Leave takes a site away for a while. Some of its servers may come back later than others, and
// crash in a write then.
func (w *World) Leave(site int, at, away time.Duration) { w.LeaveNodes(w.SiteNodes(site), at, away) }

// LeaveNodes is Leave for some nodes.
func (w *World) LeaveNodes(gone []protocol.ID, at, away time.Duration) {
	crash := w.Rand.IntN(3) > 0
	shards, _ := w.Layout.Places()
	for _, id := range gone {
		late := time.Duration(w.Rand.IntN(3)*w.Rand.IntN(400)) * time.Millisecond
		write := uint64(w.Rand.IntN(30))
		keep := sim.Keep(w.Rand.IntN(3))
		w.Sim.At(at, func() {
			if crash {
				w.Sim.Crash(id, keep)
				return
			}
			for _, other := range w.Nodes() {
				w.Sim.Cut(id, other)
				w.Sim.Cut(other, id)
			}
		})
		w.Sim.At(at+away+late, func() {
			if !crash {
				for _, other := range w.Nodes() {
					w.Sim.Mend(id, other)
					w.Sim.Mend(other, id)
				}
				return
			}
			w.Sim.Restart(id)
			if _, server := shards[id]; write > 0 && server {
				w.Sim.CrashInWrite(id, write, keep)
				w.Sim.After(2*time.Second, func() { w.Sim.Restart(id) })
			}
		})
	}
}

// Depart has nodes leave and come back, in groups that may overlap.
func (w *World) Depart(until time.Duration) {
	n := len(w.Layout.Sites)
	minority := n - w.Layout.Majority()
	for at := w.Sim.Now() + time.Second; at < until; at += time.Duration(w.Rand.IntN(4000)) * time.Millisecond {
		away := time.Duration(300+w.Rand.IntN(6000)) * time.Millisecond
		var gone []protocol.ID
		sites := w.Rand.Perm(n)
		switch w.Rand.IntN(4) {
		case 0: // whole sites
			for _, i := range sites[:1+w.Rand.IntN(minority)] {
				gone = append(gone, w.SiteNodes(i)...)
			}
		case 1: // a machine of each of some sites
			for _, i := range sites[:1+w.Rand.IntN(minority)] {
				gone = append(gone, w.machine(i)...)
			}
		case 2: // a server
			s := w.Layout.Sites[sites[0]].Servers()
			gone = []protocol.ID{s[w.Rand.IntN(len(s))]}
		default: // links
			w.CutSome(at, away)
			continue
		}
		w.LeaveNodes(gone, at, away)
	}
}

// machine returns some of a site's servers, and one of its coordinators.
func (w *World) machine(site int) []protocol.ID {
	s := w.Layout.Sites[site]
	ids := []protocol.ID{s.Coordinators[w.Rand.IntN(len(s.Coordinators))]}
	for _, id := range s.Servers() {
		if w.Rand.IntN(len(s.Shards)) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// CutSome cuts some links for a while, in one direction each.
func (w *World) CutSome(at, away time.Duration) {
	all := w.Nodes()
	for range 1 + w.Rand.IntN(2*len(all)) {
		x, y := all[w.Rand.IntN(len(all))], all[w.Rand.IntN(len(all))]
		if x != y {
			w.Sim.At(at, func() { w.Sim.Cut(x, y) })
			w.Sim.At(at+away, func() { w.Sim.Mend(x, y) })
		}
	}
}

// moveLeaders asks whoever leads a shard to hand over to another site's server, again and again
// until a time.
func (w *World) moveLeaders(until time.Duration) {
	r := rand.New(rand.NewPCG(w.Scenario.Seed, 11))
	for at := time.Second; at < until; at += time.Duration(500+r.IntN(2500)) * time.Millisecond {
		shard := r.IntN(len(w.Layout.Sites[0].Shards))
		sites := w.Layout.SitesOf(shard)
		to := sites[r.IntN(len(sites))]
		for _, i := range sites {
			w.Sim.At(at, func() { w.Sim.Deliver(w.Layout.Sites[i].Shards[shard], store.HandOver{Site: to}) })
		}
	}
}

// Rest has clients end what they do, and all that is up learn what they were told.
func (w *World) Rest() error {
	w.Stopped = true
	idle := func() bool { return !slices.ContainsFunc(w.Clients, func(a *Application) bool { return a.Busy }) }
	if err := w.Sim.RunUntil(time.Minute, idle); err != nil {
		return err
	}
	err := w.Sim.Run(3 * time.Second)
	w.Stopped = false
	return err
}

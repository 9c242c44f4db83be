package tapir

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// latencies has a client at the first of three sites commit transactions, one after the other, that
// each read and write a key of their own, and returns how long each took from the first read on.
func latencies(t *testing.T, txns int, before func(*storetest.World)) []time.Duration {
	t.Helper()
	const client = protocol.ID(300)
	var w *storetest.World
	var took []time.Duration
	var begun time.Duration
	read := func() {
		begun = w.Sim.Now()
		w.Sim.Deliver(client, store.Get{Ref: 1, Key: store.Key(rune('a' + len(took)))})
	}
	app := func(_ protocol.ID, msg store.Message) {
		switch m := msg.(type) {
		case store.Got:
			key := store.Key(rune('a' + len(took)))
			w.Sim.Deliver(client, store.Submit{Ref: 1, Reads: []store.Read{{Key: key, Version: m.Value.Version}},
				Writes: []store.Write{{Key: key}}})
		case store.Done:
			if m.Outcome.Verdict != store.Committed {
				t.Errorf("transaction %d is %+v", len(took), m.Outcome)
			}
			if took = append(took, w.Sim.Now()-begun); len(took) < txns {
				read()
			}
		}
	}
	w, err := storetest.New(subject(), storetest.Scenario{Seed: 1, App: app, Test: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(client, w.Places[0])
	if before != nil {
		before(w)
	}
	w.Sim.At(time.Second, read)
	if err := w.Sim.RunUntil(20*time.Second, func() bool { return len(took) == txns }); err != nil {
		t.Fatal(err)
	}
	return took
}

// disks is what writing to disks takes at most, on a transaction's way.
const disks = 10 * time.Millisecond

// TestOneRoundTrip: a transaction that reads what its site has is committed in one wide-area round
// trip.
func TestOneRoundTrip(t *testing.T) {
	for i, d := range latencies(t, 8, nil) {
		if d < storetest.RoundTrip || d > storetest.RoundTrip+disks {
			t.Errorf("transaction %d took %v, want one round trip of %v", i, d, storetest.RoundTrip)
		}
	}
}

// TestSiteAway: without one of three sites there is no fast path. A commit takes two round trips,
// and a timeout before that only until the coordinator knows.
func TestSiteAway(t *testing.T) {
	gone := func(w *storetest.World) {
		w.Sim.At(time.Second/2, func() {
			for _, id := range w.SiteNodes(2) {
				w.Sim.Crash(id, sim.KeepNone)
			}
		})
	}
	const txns = 16
	waited := 0
	for i, d := range latencies(t, txns, gone) {
		if d > 2*storetest.RoundTrip+disks {
			if waited++; i >= txns-4 {
				t.Errorf("transaction %d took %v still", i, d)
			}
			d -= storetest.RoundTrip / 4
		}
		if d < 2*storetest.RoundTrip || d > 2*storetest.RoundTrip+disks {
			t.Errorf("transaction %d took %v beside its timeout, want two round trips of %v", i, d, storetest.RoundTrip)
		}
	}
	if most := 2 * (silentAfter + 1); waited == 0 || waited > most {
		t.Errorf("%d transactions waited, want %d at most, which is %d at each of two shards, and one that meets the view "+
			"change there", waited, most, silentAfter)
	}
}

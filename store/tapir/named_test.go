package tapir

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// TestNotStrict shows that the level which the protocol declares is not too low: with clocks that
// differ, a transaction that began after another one had ended comes before it.
func TestNotStrict(t *testing.T) {
	strict := subject()
	strict.Protocol.Level = history.StrictSerializable
	for seed := uint64(70); seed <= 300; seed++ {
		sc := storetest.Scenario{Seed: seed, Clients: 6, Keys: 4, Near: true, Test: t.Name(),
			Faults: sim.Skew | sim.Loss | sim.Partial}
		if _, err := storetest.PlayOnce(strict, sc); err != nil {
			if !strings.Contains(err.Error(), "not strict serializable") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if _, err := storetest.PlayOnce(subject(), sc); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return
		}
	}
	t.Error("all histories are strictly serializable")
}

// TestDepartures has servers and sites leave and come back, crash as they do, and links fail, so
// that one view follows the other.
func TestDepartures(t *testing.T) {
	views := viewNumber(0)
	for seed := uint64(1); seed <= 24; seed++ {
		sc := storetest.Scenario{Seed: seed, Clients: 6, Keys: 8, Appends: seed%2 == 0, Test: t.Name()}
		if seed%4 == 0 {
			sc.Sites = 5
		}
		w, err := storetest.New(subject(), sc)
		if err != nil {
			t.Fatal(err)
		}
		w.Depart(20 * time.Second)
		if err := w.Play(20 * time.Second); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, id := range w.Layout.Sites[0].Servers() {
			views = max(views, w.Sim.Get(id).(*server).normal)
		}
	}
	if views < 5 {
		t.Errorf("no group has come to a view later than %d", views)
	}
}

// TestLostDisk has a server whose disk is lost come back under the same name: the others refuse it,
// as its votes are gone, and go on.
func TestLostDisk(t *testing.T) {
	w, err := storetest.New(subject(), storetest.Scenario{Seed: 1, Clients: 6, Keys: 8, Test: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	w.Sim.At(2*time.Second, func() { w.Sim.LoseDisk(21) })
	w.Sim.At(3*time.Second, func() { w.Sim.Restart(21) })
	if err := w.Sim.Run(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if s := w.Sim.Get(21).(*server); w.Refused[21] == "" || s.takesPart() {
		t.Errorf("refused as %q, takes part: %v", w.Refused[21], s.takesPart())
	}
	clear(w.Refused) // which the disk knows, too, whoever else is there
	for _, id := range []protocol.ID{11, 21, 31} {
		w.Sim.Crash(id, sim.KeepAll)
	}
	w.Sim.Restart(21)
	if err := w.Sim.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if w.Refused[21] == "" {
		t.Error("a server has forgotten that it was refused")
	}
	for _, id := range []protocol.ID{11, 31} {
		w.Sim.Restart(id)
	}
	before := w.Verdicts[store.Committed]
	if err := w.Sim.Run(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if after := w.Verdicts[store.Committed]; after < before+20 {
		t.Errorf("%d transactions were committed before, %d after", before, after)
	}
}

// TestTermination has coordinators and clients crash for good at every moment of a transaction: the
// servers have it finished, and its keys are free.
func TestTermination(t *testing.T) {
	for ms := 500; ms < 800; ms += 10 {
		w, err := storetest.New(subject(), storetest.Scenario{Seed: uint64(ms), Clients: 3, Keys: 3, Test: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		w.Stopped = true
		for i, d := range w.Clients {
			writes := []store.Write{{Key: "k0", Bytes: []byte{byte(i)}}, {Key: "k1", Bytes: []byte{byte(i)}}}
			w.Sim.At(500*time.Millisecond, func() { w.Sim.Deliver(d.ID, store.Submit{Ref: 1, Writes: writes}) })
		}
		w.Sim.At(time.Duration(ms)*time.Millisecond, func() {
			for _, id := range []protocol.ID{10, 20, 30, 200, 201, 202} {
				w.Sim.Crash(id, sim.KeepNone)
			}
		})
		w.Sim.At(time.Second, func() {
			for _, id := range []protocol.ID{10, 20, 30} {
				w.Sim.Restart(id)
			}
		})
		if err := w.Sim.Run(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		if err := w.Sim.RunUntil(20*time.Second, w.Quiet); err != nil {
			t.Fatalf("crash at %d ms: %v: %s", ms, err, w.Unquiet())
		}
		if err := w.EqualSites(); err != nil {
			t.Fatalf("crash at %d ms: %v", ms, err)
		}
	}
}

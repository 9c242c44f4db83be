package geostore

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// fresh is a workload of transactions that read and write keys of their own.
type fresh struct {
	reads, writes int
}

func (f fresh) Next(r *rand.Rand) workload.Txn {
	var t workload.Txn
	base := r.Uint64N(9_000_000)
	for i := range f.reads + f.writes {
		t.Ops = append(t.Ops, workload.Op{Key: base + uint64(i), Read: i < f.reads, Write: i >= f.reads})
	}
	return t
}

// uncontended plays transactions on fresh keys, one client at each site.
func uncontended(t *testing.T, mode client.Mode, w fresh, sync time.Duration) []Txn {
	t.Helper()
	var txns []Txn
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Matrix: wan.SpecRPC(), Shards: 3, Keys: 10_000_000, ValueBytes: 64, Sync: sync,
			Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		clients, err := s.Connect(mode, 1)
		if err != nil {
			t.Fatal(err)
		}
		played, err := clients.Play(t.Context(), Load{Workload: w, Seed: 2, Warm: 5 * time.Second, Txns: 12})
		if err != nil {
			t.Error(err)
		}
		txns = played.Txns
		clients.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(txns) != 12 {
		t.Errorf("%d transactions were measured, want 12", len(txns))
	}
	return txns
}

func nearest(site wan.Site) time.Duration {
	if site == "ireland" {
		return 140 * time.Millisecond
	}
	return 122 * time.Millisecond
}

// TestUncontendedLatencies: a transaction of n reads takes exactly n+1 round trips to the nearest
// other site when it waits for each of them, two when it guesses, and one when the commit says
// whether the guesses were right. One that only reads one key needs no commit.
func TestUncontendedLatencies(t *testing.T) {
	for _, c := range []struct {
		mode  client.Mode
		work  fresh
		trips time.Duration
	}{
		{client.GRPC, fresh{0, 1}, 1}, {client.GRPC, fresh{1, 0}, 1}, {client.GRPC, fresh{2, 0}, 3},
		{client.GRPC, fresh{5, 2}, 6}, {client.Off, fresh{5, 2}, 6},
		{client.Spec, fresh{0, 1}, 1}, {client.Spec, fresh{1, 0}, 1}, {client.Spec, fresh{2, 0}, 2},
		{client.Spec, fresh{5, 2}, 2}, {client.Spec, fresh{25, 25}, 2},
		{client.Predicated, fresh{0, 1}, 1}, {client.Predicated, fresh{1, 0}, 1}, {client.Predicated, fresh{5, 2}, 1},
		{client.Predicated, fresh{25, 25}, 1},
	} {
		for _, txn := range uncontended(t, c.mode, c.work, 0) {
			want := Attempt{Took: c.trips * nearest(txn.Site), Committed: true, Reads: c.work.reads, Right: c.work.reads}
			if len(txn.Attempts) != 1 || txn.Attempts[0] != want || txn.Took != want.Took {
				t.Errorf("%v of %+v at %s: %+v, want one attempt, %+v", c.mode, c.work, txn.Site, txn, want)
			}
		}
	}
}

// TestSyncsTakeTime: a vote takes one sync, or two if another one was under way.
func TestSyncsTakeTime(t *testing.T) {
	const sync = time.Millisecond
	for _, txn := range uncontended(t, client.GRPC, fresh{writes: 1}, sync) {
		if least := nearest(txn.Site) + sync; txn.Took < least || txn.Took > least+sync {
			t.Errorf("a write at %s took %v, want %v to %v", txn.Site, txn.Took, least, least+sync)
		}
	}
}

// TestComparedReads: first answers count if a quorum has compared them, or a commit has.
func TestComparedReads(t *testing.T) {
	quorum, wrong, atOnce := client.ReadTrace{First: 1, Known: 9, Right: true}, client.ReadTrace{First: 1, Known: 9},
		client.ReadTrace{First: -1, Known: 9}
	carried, dropped := client.ReadTrace{First: 1, Known: -1, Right: true}, client.ReadTrace{First: 1, Known: -1}
	for _, c := range []struct {
		verdict      store.Verdict
		reads        []client.ReadTrace
		count, right int
	}{
		{store.Committed, []client.ReadTrace{quorum, wrong, atOnce}, 2, 1},
		{store.Aborted, []client.ReadTrace{quorum, wrong, atOnce}, 2, 1},
		{store.Committed, []client.ReadTrace{carried, carried, dropped}, 2, 2},
		{store.Aborted, []client.ReadTrace{dropped, dropped, quorum}, 1, 1},
	} {
		a := attemptOf(&client.Trace{Reads: c.reads, Outcome: store.Outcome{Verdict: c.verdict}})
		if a.Reads != c.count || a.Right != c.right || a.Committed != (c.verdict == store.Committed) {
			t.Errorf("%v with %+v: %+v, want %d reads, %d of them right", c.verdict, c.reads, a, c.count, c.right)
		}
	}
}

package geostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/wan/shape"
	"github.com/foresay/foresay/workload"
)

// one is a workload of one operation each.
type one struct{}

func (one) Next(r *rand.Rand) workload.Txn {
	return workload.Txn{Ops: []workload.Op{{Key: r.Uint64N(1000), Read: true}}}
}

// TestWindow: of clients that take 100 ms, those transactions are measured that begin in the
// window, also if they end after it.
func TestWindow(t *testing.T) {
	const took = 100 * time.Millisecond
	for _, l := range []Load{
		{Workload: one{}, Warm: time.Second, For: 2 * time.Second},
		{Workload: one{}, Warm: time.Second, Txns: 80},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var players []player
			for range 4 {
				players = append(players, player{site: "oregon", try: func(ctx context.Context, _ workload.Txn) ([]Attempt, error) {
					time.Sleep(took)
					return []Attempt{{Took: took, Committed: true}}, nil
				}})
			}
			got, err := play(t.Context(), players, l)
			if err != nil {
				t.Fatal(err)
			}
			// Four clients make 40 transactions in a second. Those that began before the window end
			// in it as well.
			if n := len(got.Txns); n != 80 {
				t.Errorf("%+v: %d transactions were measured, want 80", l, n)
			}
			if d := got.Lasting - 2*time.Second; d < -took || d > 0 {
				t.Errorf("%+v: they began in %v, want 2s", l, got.Lasting)
			}
			if n := got.Commits["oregon"]; n < 76 || n > 80 {
				t.Errorf("%+v: %d commits in %v, want 40 per second", l, n, got.Lasting)
			}
			if d := time.Since(begun); d > 3*time.Second+2*took {
				t.Errorf("%+v: it took %v", l, d)
			}
		})
	}
}

// TestSlowOnesAreMeasured: a transaction that began in the window is waited for, and the others go
// on meanwhile.
func TestSlowOnesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, during := 0, 0
		start := time.Now()
		slow := player{site: "oregon", try: func(context.Context, workload.Txn) ([]Attempt, error) {
			time.Sleep(10 * time.Second)
			return nil, nil
		}}
		fast := player{site: "seoul", try: func(context.Context, workload.Txn) ([]Attempt, error) {
			time.Sleep(100 * time.Millisecond)
			quick++
			if time.Since(start) > 2*time.Second {
				during++
			}
			return nil, nil
		}}
		got, err := play(t.Context(), []player{slow, fast}, Load{Workload: one{}, For: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		longest := time.Duration(0)
		for _, txn := range got.Txns {
			longest = max(longest, txn.Took)
		}
		if longest != 10*time.Second || during < 70 {
			t.Errorf("the longest transaction took %v, want 10s; %d of %d others were made after the window", longest, during,
				quick)
		}
	})
}

func TestEqualSeedsGiveEqualTransactions(t *testing.T) {
	run := func(seed uint64, slow time.Duration) string {
		var all strings.Builder
		synctest.Test(t, func(t *testing.T) {
			ps := []player{{try: func(_ context.Context, txn workload.Txn) ([]Attempt, error) {
				time.Sleep(slow)
				fmt.Fprintln(&all, txn.Ops[0].Key)
				return nil, nil
			}}}
			if _, err := play(t.Context(), ps, Load{Workload: one{}, Seed: seed, Txns: 20}); err != nil {
				t.Fatal(err)
			}
		})
		return all.String()
	}
	if run(1, time.Second) != run(1, time.Millisecond) {
		t.Error("with the same seed a slower system plays other transactions")
	}
	if run(1, time.Second) == run(2, time.Second) {
		t.Error("with another seed the transactions are the same")
	}
}

func TestErrorsEndTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		ps := []player{
			{site: "oregon", try: func(ctx context.Context, _ workload.Txn) ([]Attempt, error) {
				return nil, shape.Pause(ctx, time.Second)
			}},
			{site: "seoul", try: func(context.Context, workload.Txn) ([]Attempt, error) { return nil, broken }},
		}
		_, err := play(t.Context(), ps, Load{Workload: one{}, For: time.Hour})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "client 1 at seoul") {
			t.Errorf("got %v", err)
		}
		if _, err := play(t.Context(), ps, Load{Workload: one{}}); err == nil {
			t.Error("a load without an end was played")
		}
	})
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

package client_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// TestAttempted: each attempt is told once with its outcome, its cause and how long it took, and
// the committed one with how long the transaction did; in an application's task, that is its
// commit.
func TestAttempted(t *testing.T) {
	for _, mode := range []client.Mode{client.Spec, client.Off, client.GRPC, client.Predicated} {
		for _, inTask := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{
					nearest: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
						time.Sleep(8 * time.Millisecond)
						return val(1), nil
					},
					read: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
						time.Sleep(8 * time.Millisecond)
						return val(1), nil
					},
				}
				f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
					time.Sleep(10 * time.Millisecond)
					if f.commits.Load() == 1 {
						return client.Decision{Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.StaleWrite}}
					}
					return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
				}
				var told []string
				c, err := client.New(client.Config{Backend: f, Mode: mode, Attempted: func(a client.Attempted) {
					told = append(told, fmt.Sprintf("%v %v: %v", a.Outcome.Verdict, a.Outcome.Reason,
						[]time.Duration{a.Took.Truncate(time.Millisecond), a.SinceFirst.Truncate(time.Millisecond)}))
				}})
				if err != nil {
					t.Fatal(err)
				}
				txn := func(ctx context.Context) (struct{}, error) {
					return struct{}{}, c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
						v, _, err := tx.Get(ctx, "k")
						if err != nil {
							return err
						}
						return tx.Put("k", v)
					})
				}
				want := []string{"aborted stale write: [18ms 18ms]", "committed none: [18ms 36ms]"}
				if inTask {
					want = []string{"aborted stale write: [10ms 10ms]", "committed none: [10ms 10ms]"}
					_, err = foresay.Do(t.Context(), txn)
				} else {
					_, err = txn(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, told); diff != "" {
					t.Errorf("%v, in a task %v: told of (-want +got):\n%s", mode, inTask, diff)
				}
				if s := c.Stats(); s.Attempts != 2 || s.Aborted != 1 || s.AbortedBy[store.StaleWrite] != 1 || s.Committed != 1 {
					t.Errorf("%v, in a task %v: %+v", mode, inTask, s)
				}
			})
		}
	}
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// ready is a store that answers and commits at once, and notes what it commits.
func ready(verdict store.Verdict) *fake {
	answer := func(_ context.Context, _ store.Key, first func(client.Answer)) (client.Answer, error) {
		return val(1), nil
	}
	return &fake{read: answer, nearest: answer, commit: func(context.Context, []store.Read,
		[]store.Write) client.Decision {
		return client.Decision{Outcome: store.Outcome{Verdict: verdict, Detail: "so it is"}}
	}}
}

// inModes calls f with a client of each mode.
func inModes(t *testing.T, verdict store.Verdict, f func(t *testing.T, c *client.Client, b *fake)) {
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		t.Run(mode.String(), func(t *testing.T) {
			b := ready(verdict)
			c, err := client.New(client.Config{Backend: b, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			f(t, c, b)
			if n := b.open.Load(); n != 0 {
				t.Errorf("%d attempts have not ended", n)
			}
		})
	}
}

// TestWritesOfEndedTransaction: what is written when the transaction's function has returned is no
// part of it, and whoever writes it is told.
func TestWritesOfEndedTransaction(t *testing.T) {
	inModes(t, store.Committed, func(t *testing.T, c *client.Client, _ *fake) {
		var left *client.Tx
		err := c.Txn(t.Context(), func(_ context.Context, tx *client.Tx) error {
			left = tx
			return tx.Put("k", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, read := left.Get(t.Context(), "k")
		for what, err := range map[string]error{"Put": left.Put("k", nil), "Delete": left.Delete("k"), "Get": read} {
			if !errors.Is(err, client.ErrEnded) {
				t.Errorf("%s on an ended transaction returns %v", what, err)
			}
		}
	})
}

// TestLimitOfReads: the read that is one too many fails, rather than the commit.
func TestLimitOfReads(t *testing.T) {
	inModes(t, store.Committed, func(t *testing.T, c *client.Client, b *fake) {
		reads := 0
		err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
			reads = 0
			for i := range store.MaxAccesses + 1 {
				if _, _, err := tx.Get(ctx, fmt.Sprint("k", i)); err != nil {
					return err
				}
				reads++
			}
			return nil
		})
		if rejected, ok := errors.AsType[*client.RejectedError](err); !ok || reads != store.MaxAccesses {
			t.Errorf("after %d reads the error is %v (%v)", reads, err, rejected)
		}
		if n := b.commits.Load(); n != 0 {
			t.Errorf("%d commits are sent", n)
		}
	})
}

// TestPanicOfRejected: nobody has looked at what a rejected transaction read, so that what its
// function panicked with is not believed.
func TestPanicOfRejected(t *testing.T) {
	inModes(t, store.Rejected, func(t *testing.T, c *client.Client, _ *fake) {
		err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
			if _, _, err := tx.Get(ctx, "k"); err != nil {
				return err
			}
			panic("what it read makes no sense")
		})
		if _, ok := errors.AsType[*client.RejectedError](err); !ok {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestSettledReads: a transaction is not validated if it reads one key, of which a majority says
// that nobody is about to change it, and does nothing else. In each other case it is.
func TestSettledReads(t *testing.T) {
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec} {
		for _, tc := range []struct {
			name    string
			settled bool
			keys    []string
			write   bool
			task    bool
			want    int64
		}{
			{name: "one key", settled: true, keys: []string{"k"}, want: 0},
			{name: "one key, twice", settled: true, keys: []string{"k", "k"}, want: 0},
			{name: "one key that is about to change", keys: []string{"k"}, want: 1},
			{name: "two keys", settled: true, keys: []string{"k", "l"}, want: 1},
			{name: "a key that it writes", settled: true, keys: []string{"k"}, write: true, want: 1},
			{name: "in a task of the application's", settled: true, keys: []string{"k"}, task: true, want: 1},
		} {
			t.Run(mode.String()+" "+tc.name, func(t *testing.T) {
				f := ready(store.Committed)
				f.read = func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
					a := val(1)
					a.Settled = tc.settled
					return a, nil
				}
				c, err := client.New(client.Config{Backend: f, Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				txn := func(ctx context.Context) (struct{}, error) {
					return struct{}{}, c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
						for _, k := range tc.keys {
							if _, _, err := tx.Get(ctx, k); err != nil {
								return err
							}
						}
						if tc.write {
							return tx.Put("k", nil)
						}
						return nil
					})
				}
				if tc.task {
					_, err = foresay.Do(t.Context(), txn)
				} else {
					_, err = txn(t.Context())
				}
				if n := f.commits.Load(); err != nil || n != tc.want {
					t.Errorf("%d commits are sent, want %d (%v)", n, tc.want, err)
				}
			})
		}
	}
}

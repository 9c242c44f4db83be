package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// One goroutine of the function's sees what another one read on a guess, and acts on it.
func TestLanes(t *testing.T) {
	for _, put := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{
				read: func(_ context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
					if first != nil {
						first(val(1))
					}
					time.Sleep(120 * time.Millisecond)
					return val(2), nil
				},
				commit: func(context.Context, []store.Read, []store.Write) client.Decision {
					return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
				},
			}
			c, _ := client.New(client.Config{Backend: f, Mode: client.Spec})
			var mu sync.Mutex
			var acted []byte
			err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
				g := foresay.NewGroup(ctx)
				g.Go(func(ctx context.Context) error {
					v, _, err := tx.Get(ctx, "k")
					if err == nil && put {
						return tx.Put("m", v)
					}
					return err
				})
				g.Go(func(ctx context.Context) error {
					time.Sleep(10 * time.Millisecond)
					key := "k"
					if put {
						key = "m"
					}
					v, _, err := tx.Get(ctx, key)
					if err != nil {
						return err
					}
					_, err = foresay.Act(ctx, "tell", func(context.Context) (struct{}, error) {
						mu.Lock()
						defer mu.Unlock()
						acted = append(acted, v...)
						return struct{}{}, nil
					})
					return err
				})
				return g.Wait()
			})
			mu.Lock()
			defer mu.Unlock()
			t.Logf("put %v: acted on %v; %v", put, acted, err)
			if len(acted) > 0 && acted[0] == 1 {
				t.Errorf("put %v: acted on a wrong guess: %v", put, acted)
			}
		})
	}
}

// In a task that runs again, a transaction counts as what it was the first time.
func TestTaskStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := &fake{
			read: func(_ context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
				if first != nil && key == "later" {
					first(val(1))
				}
				time.Sleep(120 * time.Millisecond)
				return val(2), nil
			},
			commit: func(context.Context, []store.Read, []store.Write) client.Decision {
				n++
				time.Sleep(120 * time.Millisecond)
				return client.Decision{Outcome: store.Outcome{Verdict: store.Committed},
					Txn: store.Txn{ID: store.TxnID{Time: uint64(n)}}}
			},
		}
		c, _ := client.New(client.Config{Backend: f, Mode: client.Spec})
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (struct{}, error) {
			err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
				v, _, err := tx.Get(ctx, "k")
				if err != nil {
					return err
				}
				return tx.Put("k", v)
			})
			if err != nil {
				return struct{}{}, err
			}
			return struct{}{}, c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
				v, _, err := tx.Get(ctx, "later")
				if err != nil {
					return err
				}
				return tx.Put("m", v)
			})
		})
		if s := c.Stats(); err != nil || s.Committed != 2 || s.Unknown != 0 || n != 2 {
			t.Errorf("%d commits were sent; %+v; %v", n, s, err)
		}
	})
}

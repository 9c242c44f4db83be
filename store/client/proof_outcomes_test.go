package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// scripted is a backend that takes its time: the nearest site answers at once.
type scripted struct {
	read, commit, stale time.Duration
	reads               uint64
	isStale             bool
	aborts              int // so many commits are refused first
	commits             int
}

func (s *scripted) Read(ctx context.Context, _ store.Key, _ store.Priority, first func(client.Answer)) (client.Answer, error) {
	s.reads++ // each finds a newer version
	a := client.Answer{Value: store.Value{Version: store.Version{Time: s.reads, Client: 1}, Present: true}}
	if first != nil {
		first(a)
	}
	select {
	case <-time.After(s.read):
		return a, nil
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

func (s *scripted) ReadNearest(context.Context, store.Key, store.Priority) (client.Answer, error) {
	return client.Answer{}, nil
}

func (s *scripted) Commit(ctx context.Context, _ store.Priority, reads []store.Read, writes []store.Write) client.Decision {
	s.commits++
	d := client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 100 + uint64(s.commits), Client: 1}, Reads: reads, Writes: writes}}
	d.Outcome.Verdict = store.Committed
	if s.commits <= s.aborts {
		d.Outcome.Verdict = store.Aborted
	}
	begun := time.Now()
	select {
	case <-time.After(s.commit):
	case <-ctx.Done():
		if time.Since(begun) < s.commit/2 {
			d.Outcome.Verdict = store.Unknown
		}
		time.Sleep(s.commit) // the answer was on its way
	}
	return d
}

func (s *scripted) Resolve(_ context.Context, txn store.Txn) client.Decision {
	return client.Decision{Txn: txn}
}

func (s *scripted) Stale(context.Context, []store.Read) bool {
	time.Sleep(s.stale)
	return s.isStale
}

func (s *scripted) Reserve([]store.Key, store.Priority) {}

// inc reads a key and writes it, and takes a while for that.
func inc(took time.Duration) func(ctx context.Context, tx *client.Tx) (string, error) {
	return func(ctx context.Context, tx *client.Tx) (string, error) {
		if _, _, err := tx.Get(ctx, "k"); err != nil {
			return "", err
		}
		time.Sleep(took)
		return "done", tx.Put("k", []byte("v"))
	}
}

// TestPredicatedOutcomes: the commit has left while its reads were guesses. What it comes to is the transaction's outcome, whatever else happens to the attempt.
func TestPredicatedOutcomes(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name    string
		backend scripted
		took    time.Duration // by the function
		limit   time.Duration // by the context
	}{
		{"as planned", scripted{read: time.Hour, commit: 50 * ms}, 0, time.Minute},
		{"the context ends before the answer", scripted{read: time.Hour, commit: 50 * ms}, 0, 30 * ms},
		{"what was read is stale, as is found out too late", scripted{read: time.Hour, commit: 50 * ms, stale: 30 * ms, isStale: true}, 60 * ms, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := client.New(client.Config{Backend: &tc.backend, Mode: client.Predicated, QuorumAfter: 10 * ms})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				if got, err := client.Run(ctx, c, inc(tc.took)); err != nil || got != "done" || tc.backend.commits != 1 {
					t.Errorf("got %q, %v, after %d commits", got, err, tc.backend.commits)
				}
				synctest.Wait()
			})
		})
	}
}

// surely is a call whose guess is wrong.
type surely struct{ after time.Duration }

func (s surely) Start(ctx context.Context, a *foresay.Attempt) {
	go func() {
		a.Predict("a guess")
		select {
		case <-time.After(s.after):
			a.Finish("the truth", nil)
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
		}
	}()
}

func (surely) Equal(a, b any) bool      { return a == b }
func (surely) Same(a, b any) bool       { return a == b }
func (surely) Accept(v any) (any, bool) { return v, true }

// TestTransactionOfATaskThatRunsAgain: a task makes a transaction, and is wrong about something later. It runs again, up to the same commit, which is made once: also if
// it was tried twice, if its reads would find something else by now, or if the context has ended since.
func TestTransactionOfATaskThatRunsAgain(t *testing.T) {
	const ms = time.Millisecond
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		for _, limit := range []time.Duration{time.Minute, 300 * ms} {
			t.Run(fmt.Sprint(mode, " within ", limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					backend := &scripted{read: 20 * ms, commit: 20 * ms, aborts: 1}
					c, err := client.New(client.Config{Backend: backend, Mode: mode, Backoff: ms})
					if err != nil {
						t.Fatal(err)
					}
					site, err := foresay.NewSite(foresay.SiteConfig{Name: "surely", Effect: foresay.EffectNone})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					// The truth comes after 290 ms, and the function needs 40 ms to go on with it.
					got, err := foresay.Do(ctx, func(ctx context.Context) (any, error) {
						if _, err := client.Run(ctx, c, inc(20*ms)); err != nil {
							return nil, err
						}
						return foresay.Perform(ctx, &foresay.Operation{Site: site, Conn: "x", Identity: "x", CanSpeculate: true, Transport: surely{290*ms - 122*ms}})
					})
					if errors.Is(err, foresay.ErrDiverged) || err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && got != "the truth" {
						t.Errorf("got %v, %v", got, err)
					}
					if backend.commits != 2 {
						t.Errorf("%d commits, want one that is refused and one that is not", backend.commits)
					}
					synctest.Wait()
				})
			})
		}
	}
}

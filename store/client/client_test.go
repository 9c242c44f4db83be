package client_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// fake answers as its fields say.
type fake struct {
	read, nearest func(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error)
	commit        func(ctx context.Context, reads []store.Read, writes []store.Write) client.Decision
	stales        atomic.Int64
	commits       atomic.Int64
	open          atomic.Int64 // attempts that have not ended
	holds         atomic.Int64 // of commits, those that the nearest site may hold
}

func (f *fake) Begin(client.Beginning) client.Attempt {
	f.open.Add(1)
	return f
}
func (f *fake) End() { f.open.Add(-1) }
func (f *fake) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	return f.read(ctx, key, first)
}
func (f *fake) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	return f.nearest(ctx, key, nil)
}
func (f *fake) Commit(ctx context.Context, s client.Submission) client.Decision {
	f.commits.Add(1)
	if s.Hold {
		f.holds.Add(1)
	}
	return f.commit(ctx, s.Reads, s.Writes)
}
func (f *fake) Resolve(context.Context, store.Txn) client.Decision {
	return client.Decision{Outcome: store.Outcome{Verdict: store.Rejected, Detail: "it is on its way already"}}
}
func (f *fake) Promises() history.Level                  { return history.StrictSerializable }
func (f *fake) Stales() bool                             { return true }
func (f *fake) Stale(context.Context, []store.Read) bool { f.stales.Add(1); return false }

func val(n uint64) client.Answer {
	return client.Answer{Value: store.Value{Version: store.Version{Time: n, Client: 1}, Present: true,
		Bytes: []byte{byte(n)}}, Site: "a"}
}

// The nearest site is behind for good, and refusals bring no values (they are too big): a majority
// has version 2.
func TestPredicatedBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			nearest: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
				time.Sleep(time.Millisecond)
				return val(1), nil
			},
			read: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
				time.Sleep(120 * time.Millisecond)
				return val(2), nil
			},
			commit: func(_ context.Context, reads []store.Read, _ []store.Write) client.Decision {
				time.Sleep(120 * time.Millisecond)
				d := client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 9, Client: 9},
					Priority: store.Priority{Began: 9, Client: 9}}}
				if reads[0].Version.Time == 2 {
					d.Outcome.Verdict = store.Committed
				} else {
					d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}
				}
				return d
			},
		}
		c, _ := client.New(client.Config{Backend: f, Mode: client.Predicated})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			v, _, err := tx.Get(ctx, "k")
			if err != nil {
				return err
			}
			return tx.Put("k", v)
		})
		if err != nil {
			t.Errorf("after %d commits: %v", f.commits.Load(), err)
		}
	})
}

// Only a commit that stands on guesses has the nearest site wait: it is the one that is a single
// round trip.
func TestHold(t *testing.T) {
	for mode, want := range map[client.Mode]int64{client.Predicated: 1, client.Spec: 0, client.GRPC: 0} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{
				nearest: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) { return val(1), nil },
				read:    func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) { return val(1), nil },
				commit: func(context.Context, []store.Read, []store.Write) client.Decision {
					return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
				},
			}
			c, err := client.New(client.Config{Backend: f, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
				v, _, err := tx.Get(ctx, "k")
				if err != nil {
					return err
				}
				return tx.Put("k", v)
			})
			if err != nil || f.commits.Load() != 1 || f.holds.Load() != want {
				t.Errorf("mode %v: %v, %d commits, %d of them may be held (want %d)", mode, err, f.commits.Load(), f.holds.Load(),
					want)
			}
		})
	}
}

// A discarded run of an earlier attempt goes on, and reads, while later attempts begin.
func TestRace(t *testing.T) {
	var n atomic.Int64
	f := &fake{
		read: func(_ context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
			if first != nil && key == "k" {
				first(val(1))
			}
			time.Sleep(2 * time.Millisecond)
			return val(2), nil
		},
		commit: func(context.Context, []store.Read, []store.Write) client.Decision {
			d := client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 9, Client: 9},
				Priority: store.Priority{Began: 9, Client: 9}}, Outcome: store.Outcome{Verdict: store.Committed}}
			if n.Add(1) < 20 {
				d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}
			}
			return d
		},
	}
	c, _ := client.New(client.Config{Backend: f, Mode: client.Spec})
	var astray atomic.Int64 // runs; no WaitGroup, as one may begin while the test waits for the others
	err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
		v, _, err := tx.Get(ctx, "k")
		if err != nil {
			return err
		}
		if v[0] == 1 { // the wrong guess: this run will be discarded, and does not look at its context
			astray.Add(1)
			defer astray.Add(-1)
			for range 30 {
				time.Sleep(time.Millisecond)
				_, _, _ = tx.Get(ctx, "l")
				_ = tx.Attempt()
			}
		}
		return tx.Put("k", v)
	})
	for astray.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// A function that ends its goroutine or panics leaves nothing behind.
func TestWatchLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{read: func(_ context.Context, _ store.Key, first func(client.Answer)) (client.Answer, error) {
			return val(2), nil
		}}
		f.commit = func(context.Context, []store.Read, []store.Write) client.Decision { panic("no commit") }
		c, _ := client.New(client.Config{Backend: f, Mode: client.GRPC})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Txn(context.Background(), func(ctx context.Context, tx *client.Tx) error {
				_, _, _ = tx.Get(ctx, "k")
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		time.Sleep(time.Hour)
		if f.stales.Load() > 0 {
			t.Errorf("%d validations of a transaction that ended an hour ago", f.stales.Load())
		}
	})
}

// What is asked about an unknown transaction is not answered by "it was never sent".
func TestResolve(t *testing.T) {
	c, _ := client.New(client.Config{Backend: &fake{}})
	err := c.Resolve(t.Context(), store.Txn{ID: store.TxnID{Time: 1, Client: 1}})
	if _, ok := errors.AsType[*client.RejectedError](err); ok {
		t.Error(err)
	}
}

// Nothing but panics of its own leaves a function that was interrupted because its reads do not go
// together.
type staler struct{ *fake }

func (s staler) Begin(client.Beginning) client.Attempt { return s }

func (staler) Stale(context.Context, []store.Read) bool { return true }

func TestInterruptedPanic(t *testing.T) {
	for _, m := range []client.Mode{client.GRPC, client.Spec} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			f := &fake{}
			f.read = func(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
				if err := ctx.Err(); err != nil {
					return client.Answer{}, context.Cause(ctx)
				}
				return val(2), nil
			}
			f.nearest = f.read
			f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
				return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
			}
			c, _ := client.New(client.Config{Backend: staler{f}, Mode: m})
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%v: %v", m, p)
				}
			}()
			err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
				must := func(key string) {
					if _, _, err := tx.Get(ctx, key); err != nil {
						panic(err)
					}
				}
				must("k")
				if n++; n == 1 {
					time.Sleep(3 * time.Second)
				}
				must("l")
				return nil
			})
			t.Logf("%v: %v", m, err)
		})
	}
}

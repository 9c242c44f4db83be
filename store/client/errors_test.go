package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// TestEveryErrorIsTyped: when a transaction's time is up, wherever it is, its error is one of this
// package's: it says what was waited for, whether the transaction may have committed, and that the
// time was up, without the engine's words.
func TestEveryErrorIsTyped(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		for _, tc := range []struct {
			name   string
			damage func(*fake)
			may    bool
			check  func(error) bool
		}{
			{"reads are not answered", func(f *fake) {
				f.read = func(ctx context.Context, _ store.Key, _ func(client.Answer)) (client.Answer, error) {
					return client.Answer{}, wait(ctx)
				}
				f.nearest = f.read
			}, false, func(err error) bool {
				u, ok := errors.AsType[*client.UnavailableError](err)
				return ok && u.Key == "k"
			}},
			{"the commit is not answered", func(f *fake) {
				f.commit = func(ctx context.Context, _ []store.Read, _ []store.Write) client.Decision {
					_ = wait(ctx)
					return client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 1, Client: 1}},
						Outcome: store.Outcome{Sites: []string{"b"}}}
				}
			}, true, func(err error) bool {
				u, ok := errors.AsType[*client.UnknownError](err)
				return ok && len(u.Sites) == 1 && !u.Txn.ID.IsZero()
			}},
			{"nothing was sent", func(f *fake) {
				f.commit = func(ctx context.Context, _ []store.Read, _ []store.Write) client.Decision {
					_ = wait(ctx)
					return client.Decision{Outcome: store.Outcome{Verdict: store.Rejected, Sites: []string{"b"},
						Detail: "nothing was sent: b: no answer"}}
				}
			}, false, func(err error) bool {
				r, ok := errors.AsType[*client.RejectedError](err)
				return ok && len(r.Sites) == 1
			}},
			{"refused for good", func(f *fake) {
				f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
					return client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 1, Client: 1}},
						Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.Locked}}
				}
			}, false, func(err error) bool {
				a, ok := errors.AsType[*client.AbortedError](err)
				return ok && a.Reason == store.Locked
			}},
		} {
			t.Run(fmt.Sprint(mode, " ", tc.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := ready(store.Committed)
					tc.damage(f)
					c, err := client.New(client.Config{Backend: f, Mode: mode})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err = c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
						if _, _, err := tx.Get(ctx, "k"); err != nil {
							return err
						}
						return tx.Put("k", nil)
					})
					if !tc.check(err) || !errors.Is(err, context.DeadlineExceeded) || client.MayHaveCommitted(err) != tc.may ||
						strings.Contains(err.Error(), "foresay: ") {
						t.Errorf("the error is %v (%T)", err, err)
					}
				})
			})
		}
	}
}

// TestTimeThatWasUpBefore: a read whose time was up before it began says so, without the engine's
// words.
func TestTimeThatWasUpBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Config{Backend: ready(store.Committed), Mode: client.Spec})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			time.Sleep(2 * time.Second)
			_, _, err := tx.Get(ctx, "k")
			return err
		})
		if err == nil || strings.Contains(err.Error(), "foresay: ") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestCanceled: whoever cancels the context of a transaction that reads is told that, and not that
// sites do not answer.
func TestCanceled(t *testing.T) {
	reason := errors.New("the user went away")
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		for _, why := range []error{nil, reason} {
			for _, inTask := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %v, in a task: %v", mode, why, inTask), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := ready(store.Committed)
						f.read = func(ctx context.Context, key store.Key, _ func(client.Answer)) (client.Answer, error) {
							<-ctx.Done()
							return client.Answer{}, client.Unread(ctx, &client.UnavailableError{Key: key, Sites: []string{"b"}})
						}
						f.nearest = f.read
						c, err := client.New(client.Config{Backend: f, Mode: mode})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancelCause(t.Context())
						time.AfterFunc(time.Second, func() { cancel(why) })
						do := func(ctx context.Context) (struct{}, error) {
							return struct{}{}, c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
								_, _, err := tx.Get(ctx, "k")
								return err
							})
						}
						if inTask {
							_, err = foresay.Do(ctx, func(ctx context.Context) (struct{}, error) {
								_, err := do(ctx)
								return struct{}{}, err
							})
						} else {
							_, err = do(ctx)
						}
						x, ok := errors.AsType[*client.CanceledError](err)
						if !inTask && (!ok || x.Key != "k") || !errors.Is(err, context.Canceled) ||
							errors.As(err, new(*client.UnavailableError)) || client.MayHaveCommitted(err) {
							t.Errorf("the error is %v (%T)", err, err)
						}
						if why != nil && !inTask && !errors.Is(err, why) {
							t.Errorf("the error %v does not say why", err)
						}
					})
				})
			}
		}
	}
}

// TestDeadlineIsNoCancellation: who waits in vain until a deadline is told that sites do not
// answer, in the transaction's function, too.
func TestDeadlineIsNoCancellation(t *testing.T) {
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		synctest.Test(t, func(t *testing.T) {
			f := ready(store.Committed)
			f.read = func(ctx context.Context, key store.Key, _ func(client.Answer)) (client.Answer, error) {
				<-ctx.Done()
				return client.Answer{}, client.Unread(ctx, &client.UnavailableError{Key: key, Sites: []string{"b"}})
			}
			f.nearest = f.read
			c, err := client.New(client.Config{Backend: f, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			txn := func(ctx context.Context) (struct{}, error) {
				return struct{}{}, c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
					_, _, err := tx.Get(ctx, "k")
					if !errors.As(err, new(*client.UnavailableError)) {
						t.Errorf("mode %v: the function is told %v (%T)", mode, err, err)
					}
					return err
				})
			}
			_, err = txn(ctx)
			for _, err := range []error{err, func() error { _, err := foresay.Do(ctx, txn); return err }()} {
				if errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("mode %v: the error is %v (%T)", mode, err, err)
				}
			}
		})
	}
}

// TestTransactionsOfDiscardedRuns: a transaction of a task's run that is discarded while it reads
// fails as any other call of that run does.
func TestTransactionsOfDiscardedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ready(store.Committed)
		f.read = func(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
			if key == "guessed" {
				first(val(2))
				time.Sleep(time.Second)
				return val(1), nil
			}
			<-ctx.Done()
			return client.Answer{}, client.Unread(ctx, &client.UnavailableError{Key: key})
		}
		c, err := client.New(client.Config{Backend: f, Mode: client.Spec})
		if err != nil {
			t.Fatal(err)
		}
		discarded := make(chan error, 1)
		_, err = foresay.Do(t.Context(), func(ctx context.Context) (struct{}, error) {
			right := false
			err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
				v, _, err := tx.Get(ctx, "guessed")
				if right = string(v) != string(val(2).Value.Bytes); err == nil && !right {
					_, _, err = tx.Get(ctx, "under way")
				}
				return err
			})
			if !right {
				discarded <- err
			}
			return struct{}{}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		err = <-discarded
		if !errors.Is(err, foresay.ErrMisspeculated) || errors.As(err, new(*client.UnavailableError)) {
			t.Errorf("a discarded run is told %v (%T)", err, err)
		}
		// and if the answer is faster that nobody wants the read any more
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(foresay.ErrMisspeculated)
		if err := client.Unread(ctx, &client.UnavailableError{Key: "k"}); err != foresay.ErrMisspeculated {
			t.Errorf("a read of a discarded run ends with %v (%T)", err, err)
		}
	})
}

// TestReadsOfDiscardedRuns: what a discarded run reads fails as any other call of that run does,
// and not as if sites did not answer.
func TestReadsOfDiscardedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ready(store.Committed)
		f.read = func(_ context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
			if key == "guessed" {
				first(val(2))
				time.Sleep(time.Second)
				return val(1), nil
			}
			time.Sleep(2 * time.Second)
			return val(1), nil
		}
		c, err := client.New(client.Config{Backend: f, Mode: client.Spec})
		if err != nil {
			t.Fatal(err)
		}
		discarded := make(chan error, 2)
		err = c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
			if v, _, err := tx.Get(ctx, "guessed"); err != nil || string(v) != string(val(2).Value.Bytes) {
				return err
			}
			_, _, during := tx.Get(ctx, "under way")
			_, _, after := tx.Get(ctx, "begun later")
			discarded <- during
			discarded <- after
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // for the answers that nobody waits for
		for range 2 {
			err := <-discarded
			if !errors.Is(err, foresay.ErrMisspeculated) || errors.As(err, new(*client.UnavailableError)) {
				t.Errorf("a discarded run is told %v (%T)", err, err)
			}
		}
	})
}

// TestFutureOfTransaction: who waits for a future, and gives up, is told that its transaction may
// have committed, in a task or not, whatever that is doing then.
func TestFutureOfTransaction(t *testing.T) {
	type run func(context.Context) (int, error)
	waits := map[string]func(ctx context.Context, slow, quick run) *foresay.Future[int]{
		"go": func(ctx context.Context, slow, _ run) *foresay.Future[int] { return foresay.Go(ctx, slow) },
		"then": func(ctx context.Context, slow, _ run) *foresay.Future[int] {
			return foresay.Then(foresay.Go(ctx, slow), func(_ context.Context, n int) (int, error) { return n, nil })
		},
		"any": func(ctx context.Context, slow, _ run) *foresay.Future[int] {
			f := foresay.Go(ctx, slow)
			return foresay.Any(f, f)
		},
		"all": func(ctx context.Context, slow, quick run) *foresay.Future[int] {
			all := foresay.All(foresay.Go(ctx, slow), foresay.Go(ctx, quick))
			return foresay.Then(all, func(context.Context, []int) (int, error) { return 0, nil })
		},
	}
	for name, future := range waits {
		for _, computing := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := ready(store.Committed)
				f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
					time.Sleep(2 * time.Second)
					return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
				}
				c, err := client.New(client.Config{Backend: f, Mode: client.Spec})
				if err != nil {
					t.Fatal(err)
				}
				quick := func(ctx context.Context) (int, error) {
					return 0, c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", nil) })
				}
				slow := func(ctx context.Context) (int, error) {
					if computing {
						time.Sleep(2 * time.Second)
					}
					return quick(ctx)
				}
				gives := func(ctx context.Context) (int, error) {
					future := future(ctx, slow, quick)
					waits, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, err := future.Wait(waits)
					if !client.MayHaveCommitted(err) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s, computing: %v: who waits is told %v (%T)", name, computing, err, err)
					}
					return 0, nil
				}
				if _, err := foresay.Do(t.Context(), gives); err != nil {
					t.Fatal(err)
				}
				if _, err := gives(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			})
		}
	}
}

// TestTimeIsUpOnHotKeys: where others were in the way of the attempts before, a read whose time is
// up says that, and not that sites do not answer. Otherwise it does.
func TestTimeIsUpOnHotKeys(t *testing.T) {
	for _, mode := range []client.Mode{client.GRPC, client.Spec} {
		for reason, want := range map[store.Reason]string{
			store.StaleRead: `client: read "k": time was up in attempt 2, after the one before was refused (stale read): ` +
				"other transactions have its keys, and reads may wait for their turn there; not answered yet by b: b: no answer: " +
				"context deadline exceeded",
			store.Overloaded: `client: read "k": too few sites answer, not b: b: no answer: context deadline exceeded`,
		} {
			synctest.Test(t, func(t *testing.T) {
				f := ready(store.Committed)
				reads := 0
				answered := f.read
				f.read = func(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
					if reads++; reads == 1 {
						return answered(ctx, key, first)
					}
					<-ctx.Done()
					return client.Answer{}, &client.UnavailableError{Key: key, Sites: []string{"b"}, Detail: "b: no answer",
						Err: context.Cause(ctx)}
				}
				f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
					return client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 1, Client: 1}},
						Outcome: store.Outcome{Verdict: store.Aborted, Reason: reason}}
				}
				c, err := client.New(client.Config{Backend: f, Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
					if _, _, err := tx.Get(ctx, "k"); err != nil {
						return err
					}
					return tx.Put("k", nil)
				})
				if u, ok := errors.AsType[*client.UnavailableError](err); !ok || u.Error() != want {
					t.Errorf("%v: the error is %v, want %s", mode, err, want)
				}
			})
		}
	}
}

package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// snapshots is a store whose attempts read snapshots, and take nothing once they have ended.
type snapshots struct {
	begun, open, late atomic.Int64
}

type snapshot struct {
	client.Attempt
	of    *snapshots
	ended atomic.Bool
}

func (s *snapshots) Begin(client.Beginning) client.Attempt {
	s.begun.Add(1)
	s.open.Add(1)
	return &snapshot{of: s}
}

func (s *snapshots) Promises() history.Level { return history.SessionSnapshotIsolation }
func (s *snapshots) Stales() bool            { return false }
func (s *snapshots) Resolve(context.Context, store.Txn) client.Decision {
	panic("all outcomes are known")
}

func (x *snapshot) End() {
	if !x.ended.Swap(true) {
		x.of.open.Add(-1)
	}
}

// takes counts what is asked of an attempt that has ended.
func (x *snapshot) takes() {
	if x.ended.Load() {
		x.of.late.Add(1)
	}
	time.Sleep(50 * time.Millisecond)
}

func (x *snapshot) Read(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
	x.takes()
	return val(1), nil
}

func (x *snapshot) Commit(context.Context, client.Submission) client.Decision {
	x.takes()
	return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
}

// lateAnswer is a call that is answered after 130 ms, and was guessed at once.
type lateAnswer struct{ guess, answer string }

func (l lateAnswer) Start(_ context.Context, a *driver.Attempt) {
	a.Predict(l.guess)
	time.AfterFunc(130*time.Millisecond, func() { a.Finish(l.answer, nil) })
}
func (l lateAnswer) Equal(a, b any) bool      { return a == b }
func (l lateAnswer) Same(a, b any) bool       { return a == b }
func (l lateAnswer) Accept(v any) (any, bool) { return v, true }

// TestSnapshotOutlivesWrongGuess: a run that stood on a wrong guess does not end the snapshot that
// the next one goes on in, and each snapshot ends when nobody needs it.
func TestSnapshotOutlivesWrongGuess(t *testing.T) {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "/guess", Mode: control.ModeOn,
		Effect: control.EffectNone})
	if err != nil {
		t.Fatal(err)
	}
	guess := func(ctx context.Context, l lateAnswer) (string, error) {
		v, err := driver.Perform(ctx, &driver.Operation{CallSite: site, Conn: "conn", Identity: "guess", Request: "guess",
			CanSpeculate: true, Transport: l})
		if err != nil {
			return "", err
		}
		return v.(string), nil
	}
	wrong, right := lateAnswer{"wrong", "right"}, lateAnswer{"right", "right"}
	gets := func(ctx context.Context, tx *client.Tx, keys ...string) error {
		for _, k := range keys {
			if _, _, err := tx.Get(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}
	write := func(ctx context.Context, tx *client.Tx) error {
		if err := gets(ctx, tx, "a", "b", "c", "d"); err != nil {
			return err
		}
		return tx.Put("a", []byte("v"))
	}
	for name, code := range map[string]func(ctx context.Context, c *client.Client) error{
		"before it": func(ctx context.Context, c *client.Client) error {
			if _, err := guess(ctx, wrong); err != nil {
				return err
			}
			return c.Txn(ctx, write)
		},
		"before it, and it is read to its end": func(ctx context.Context, c *client.Client) error {
			if _, err := guess(ctx, wrong); err != nil {
				return err
			}
			return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error { return gets(ctx, tx, "a") })
		},
		"in it": func(ctx context.Context, c *client.Client) error {
			return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
				if err := gets(ctx, tx, "z"); err != nil {
					return err
				}
				if _, err := guess(ctx, wrong); err != nil {
					return err
				}
				return write(ctx, tx)
			})
		},
		"only with it": func(ctx context.Context, c *client.Client) error {
			if v, err := guess(ctx, wrong); err != nil || v == "right" {
				return err
			}
			return c.Txn(ctx, write)
		},
		"nowhere": func(ctx context.Context, c *client.Client) error {
			if _, err := guess(ctx, right); err != nil {
				return err
			}
			return c.Txn(ctx, func(context.Context, *client.Tx) error { return nil })
		},
		"in it, and then its time is over": func(ctx context.Context, c *client.Client) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if _, err := guess(ctx, right); err != nil {
				return err
			}
			if err := c.Txn(ctx, write); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &snapshots{}
				c, err := client.New(client.Config{Backend: s, Mode: client.Spec})
				if err != nil {
					t.Fatal(err)
				}
				_, err = foresay.Do(t.Context(), func(ctx context.Context) (struct{}, error) { return struct{}{}, code(ctx, c) })
				time.Sleep(time.Second) // what was given up ends
				if err != nil || s.begun.Load() != 1 || s.late.Load() != 0 || s.open.Load() != 0 {
					t.Errorf("%v: %d snapshots, %d of them open, were asked for %d things after their end", err, s.begun.Load(),
						s.open.Load(), s.late.Load())
				}
			})
		})
	}
}

package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// serializable is a store whose transactions are serializable and no more.
type serializable struct{ *begins }

func (serializable) Promises() history.Level { return history.Serializable }

func (serializable) Stales() bool { return false }

// TestLevels: a level is refused, before the function runs, if it makes no sense or the store
// cannot keep it. Else all attempts begin with it, those in a task too.
func TestLevels(t *testing.T) {
	for _, tc := range []struct {
		name    string
		promise history.Level
		opts    []client.Option
		want    client.Level
		refused string
	}{
		{"none", history.StrictSerializable, nil, 0, ""},
		{"none, of a weak store", history.Serializable, nil, 0, ""},
		{"strict", history.StrictSerializable, []client.Option{client.Strict}, client.Strict, ""},
		{"serializable", history.StrictSerializable, []client.Option{client.Serializable}, client.Serializable, ""},
		{"serializable, of a weak store", history.Serializable, []client.Option{client.Serializable}, client.Serializable,
			""},
		{"strict, of a weak store", history.Serializable, []client.Option{client.Strict}, 0,
			"asks to be strict, and the store's protocol promises serializable transactions only"},
		{"of a store without closed timestamps", history.Serializable, []client.Option{client.Stale(time.Second)}, 0,
			"asks to be stale(1s), and the store's protocol has no closed timestamps"},
		{"stale without an age", history.StrictSerializable, []client.Option{client.Stale(0)}, 0,
			"how old what it reads may be"},
		{"of an age below 0", history.StrictSerializable, []client.Option{client.Stale(-1)}, 0,
			"how old what it reads may be"},
		{"stale and strict", history.StrictSerializable, []client.Option{client.Stale(1), client.Strict}, 0,
			"level is given twice"},
		{"two", history.StrictSerializable, []client.Option{client.Strict, client.Serializable}, 0, "level is given twice"},
		{"none that there is", history.StrictSerializable, []client.Option{client.Level(7)}, 0, "no level Level(7)"},
		{"zero", history.StrictSerializable, []client.Option{client.Level(0)}, 0, "no level Level(0)"},
	} {
		f := &begins{fake: ready(store.Aborted)}
		f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
			return client.Decision{Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.Locked}}
		}
		var backend client.Backend = f
		if tc.promise == history.Serializable {
			backend = serializable{f}
		}
		c, err := client.New(client.Config{Backend: backend, Mode: client.GRPC, MaxAttempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		ran, traced := false, client.Level(99)
		txn := func(ctx context.Context) error {
			ctx = client.WithTrace(ctx, func(tr *client.Trace) { traced = tr.Level })
			return c.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
				ran = true
				return tx.Put("k", nil)
			}, tc.opts...)
		}
		err = txn(t.Context())
		if tc.refused != "" {
			if r, ok := errors.AsType[*client.RejectedError](err); !ok || !strings.Contains(r.Error(), tc.refused) || ran {
				t.Errorf("%s: the function ran: %v; the error is %v", tc.name, ran, err)
			}
			continue
		}
		if _, ok := errors.AsType[*client.AbortedError](err); !ok {
			t.Errorf("%s: the error is %v", tc.name, err)
		}
		_, _ = foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return 0, txn(ctx) })
		for _, b := range f.of {
			if b.Level != tc.want || traced != tc.want {
				t.Errorf("%s: an attempt begins with the level %v, and is traced as %v", tc.name, b.Level, traced)
			}
		}
		if len(f.of) != 4 {
			t.Errorf("%s: %d attempts, want 4", tc.name, len(f.of))
		}
	}
}

func TestLevelNames(t *testing.T) {
	for _, l := range []client.Level{client.Strict, client.Serializable, client.Stale(5 * time.Second),
		client.Stale(1500 * time.Millisecond), client.Stale(1)} {
		if got, err := client.ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("%v is parsed as %v: %v", l, got, err)
		}
	}
	if l, err := client.ParseLevel("stale(5s)"); l != client.Stale(5*time.Second) || err != nil {
		t.Errorf("stale(5s) is %v, %v", l, err)
	}
	for name, want := range map[string]string{
		"serialisable": "there are strict, serializable, snapshot, stale(5s); did you mean serializable?",
		"stail(5s)":    "there are strict",
		"stale":        "want, say, stale(5s)",
		"stale(":       "want, say, stale(5s)",
		"stale(0s)":    "want, say, stale(5s)",
		"stale(-5s)":   "want, say, stale(5s)",
		"stale(5)":     "want, say, stale(5s)",
	} {
		if _, err := client.ParseLevel(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestStaleIsForTheFirstAttempt: who tries again, as it writes, sees what there is; and so does a
// task, which may have read long ago. What is read is right, so nothing validates it.
func TestStaleIsForTheFirstAttempt(t *testing.T) {
	f := &begins{fake: ready(store.Aborted)}
	f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
		return client.Decision{Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}}
	}
	c, err := client.New(client.Config{Backend: f, Mode: client.Predicated, MaxAttempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	txn := func(ctx context.Context) error {
		return c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", nil) },
			client.Stale(time.Second))
	}
	_ = txn(t.Context())
	_, _ = foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return 0, txn(ctx) })
	var got []client.Level
	for _, b := range f.of {
		got = append(got, b.Level)
	}
	want := []client.Level{client.Stale(time.Second), client.Strict, client.Strict, client.Strict}
	if !slices.Equal(got, want) || f.of[0].Mode != client.Spec || f.of[1].Mode != client.Predicated {
		t.Errorf("attempts begin with %v, the first two in the modes %v and %v", got, f.of[0].Mode, f.of[1].Mode)
	}
}

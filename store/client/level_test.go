package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// serializable is a store whose transactions are serializable and no more.
type serializable struct{ *begins }

func (serializable) Promises() history.Level { return history.Serializable }

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
	for _, l := range []client.Level{client.Strict, client.Serializable} {
		if got, err := client.ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("%v is parsed as %v: %v", l, got, err)
		}
	}
	if _, err := client.ParseLevel("serialisable"); err == nil || !strings.Contains(err.Error(), "strict, serializable") {
		t.Errorf("the error is %v", err)
	}
}

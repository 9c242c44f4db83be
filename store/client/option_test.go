package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// TestBadKeys: what is declared and makes no sense is an error, and nothing is done.
func TestBadKeys(t *testing.T) {
	many := make([]string, 33)
	for i := range many {
		many[i] = strings.Repeat(string(rune('a'+i)), 1024)
	}
	for _, tc := range []struct {
		name, want string
		opts       []client.Option
	}{
		{"a key twice, to be read", `"b" is declared twice, to read it`,
			[]client.Option{client.Keys([]string{"b", "a", "b"}, nil)}},
		{"a key twice, to be written", `"b" is declared twice, to write it`,
			[]client.Option{client.Keys([]string{"b"}, []string{"b", "b"})}},
		{"an empty key", "key number 2 that is declared, to read it, is empty",
			[]client.Option{client.Keys([]string{"a", ""}, nil)}},
		{"keys twice", "keys are declared twice",
			[]client.Option{client.Keys([]string{"a"}, nil), client.Keys([]string{"b"}, nil)}},
		{"a long key", "a declared key of 4097 bytes",
			[]client.Option{client.Keys(nil, []string{strings.Repeat("k", store.MaxKeyBytes+1)})}},
		{"too much", "declared keys of ", []client.Option{client.Keys(many, nil)}},
	} {
		f := ready(store.Committed)
		c, _ := client.New(client.Config{Backend: f})
		err := c.Txn(t.Context(), func(context.Context, *client.Tx) error {
			t.Errorf("%s: the function runs", tc.name)
			return nil
		}, tc.opts...)
		rejected, ok := errors.AsType[*client.RejectedError](err)
		if !ok || !strings.Contains(rejected.Error(), tc.want) || client.MayHaveCommitted(err) {
			t.Errorf("%s: the error is %v", tc.name, err)
		}
	}
}

// TestEmptyKeys: the empty key is refused, declared or not, and whatever is done with it.
func TestEmptyKeys(t *testing.T) {
	for name, do := range map[string]func(context.Context, *client.Tx) error{
		"put":    func(_ context.Context, tx *client.Tx) error { return tx.Put("", []byte("v")) },
		"delete": func(_ context.Context, tx *client.Tx) error { return tx.Delete("") },
		"get": func(ctx context.Context, tx *client.Tx) error {
			_, _, err := tx.Get(ctx, "")
			return err
		},
	} {
		for _, mode := range []client.Mode{client.Spec, client.GRPC} {
			c, _ := client.New(client.Config{Backend: ready(store.Committed), Mode: mode})
			err := c.Txn(t.Context(), do)
			if rejected, ok := errors.AsType[*client.RejectedError](err); !ok || rejected.Detail != "the key is empty" {
				t.Errorf("%s in mode %v: the error is %v", name, mode, err)
			}
		}
	}
}

// begins notes what is known of attempts when they begin.
type begins struct {
	*fake
	of []client.Beginning
}

func (b *begins) Begin(x client.Beginning) client.Attempt {
	b.of = append(b.of, x)
	return b.fake.Begin(x)
}

// TestKeysAreDeclaredOnce: the first attempt declares what the transaction is said to read and to
// write, in order; those after a refusal do not, and none in a task.
func TestKeysAreDeclaredOnce(t *testing.T) {
	for _, mode := range []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated} {
		f := &begins{fake: ready(store.Committed)}
		first := true
		f.commit = func(context.Context, []store.Read, []store.Write) client.Decision {
			d := client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
			if first {
				d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.Locked}
			}
			first = false
			return d
		}
		c, _ := client.New(client.Config{Backend: f, Mode: mode})
		txn := func(ctx context.Context) error {
			return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
				if _, _, err := tx.Get(ctx, "b"); err != nil {
					return err
				}
				return tx.Put("b", nil)
			}, client.Keys([]string{"b", "a"}, []string{"b"}))
		}
		if err := txn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(f.of) != 2 || !slices.Equal(f.of[0].Reads, []store.Key{"a", "b"}) ||
			!slices.Equal(f.of[0].Writes, []store.Key{"b"}) || len(f.of[1].Reads)+len(f.of[1].Writes) > 0 {
			t.Errorf("%v: attempts begin with %+v", mode, f.of)
		}
		f.of = nil
		if _, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return 0, txn(ctx) }); err != nil {
			t.Fatal(err)
		}
		for _, b := range f.of {
			if len(b.Reads)+len(b.Writes) > 0 {
				t.Errorf("%v: in a task, an attempt begins with %+v", mode, b)
			}
		}
		if n := f.open.Load(); n != 0 {
			t.Errorf("%v: %d attempts have not ended", mode, n)
		}
	}
}

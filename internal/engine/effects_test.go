package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestKeyOfAnotherType: a key of Memo or Act that is used for two types gives an
// error that names it and them, and each type's own use goes on.
func TestKeyOfAnotherType(t *testing.T) {
	failed := errors.New("failed")
	number := func(context.Context) (int, error) { return 7, nil }
	text := func(context.Context) (string, error) { return "seven", nil }
	none := func(context.Context) (error, error) { return nil, failed }
	uses := map[string]struct {
		number func(ctx context.Context, key string) (int, error)
		text   func(ctx context.Context, key string) (string, error)
		none   func(ctx context.Context, key string) (error, error)
	}{
		"Memo": {
			func(ctx context.Context, key string) (int, error) { return Memo(ctx, key, number) },
			func(ctx context.Context, key string) (string, error) { return Memo(ctx, key, text) },
			func(ctx context.Context, key string) (error, error) { return Memo(ctx, key, none) },
		},
		"Act": {
			func(ctx context.Context, key string) (int, error) { return Act(ctx, key, number) },
			func(ctx context.Context, key string) (string, error) { return Act(ctx, key, text) },
			func(ctx context.Context, key string) (error, error) { return Act(ctx, key, none) },
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					for range 2 {
						if v, err := use.number(ctx, "k"); v != 7 || err != nil {
							t.Errorf("for an int: %v, %v; want 7", v, err)
						}
						if v, err := use.none(ctx, "nil"); v != nil || err != failed {
							t.Errorf("for a nil error: %v, %v; want nil and its error", v, err)
						}
					}
					v, err := use.text(ctx, "k")
					if v != "" {
						t.Errorf("for a string: %q; want none", v)
					}
					return 0, err
				})
				want := "foresay: " + name + `: key "k" is of type int in this task and cannot be used for type string`
				if err == nil || err.Error() != want {
					t.Errorf("got error %v\nwant %s", err, want)
				}
			})
		})
	}
}

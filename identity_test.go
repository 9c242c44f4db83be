package foresay

import (
	"context"
	"testing"
)

type lookupKey string

// TestLookups: a context says the same if it does under the keys that were asked for,
// and what is asked for later comes from the one that is followed.
func TestLookups(t *testing.T) {
	with := func(user, tenant any) context.Context {
		return context.WithValue(context.WithValue(t.Context(), lookupKey("user"), user), lookupKey("tenant"), tenant)
	}
	s := &lookups{ctx: with("bob", "x"), told: func(key any) bool { return key == lookupKey("told") }}
	s.value(lookupKey("told"))
	if n, same := s.agree(with("alice", "y"), false); n != 0 || !same {
		t.Errorf("before anything was asked: %d, %v", n, same)
	}
	if v := s.value(lookupKey("tenant")); v != "x" {
		t.Errorf("got %v", v)
	}
	if _, same := s.agree(with("bob", "y"), false); same {
		t.Error("another tenant counts as the same")
	}
	if n, same := s.agree(with("alice", "x"), false); n != 1 || !same {
		t.Errorf("the same tenant: %d, %v", n, same)
	}
	if _, same := s.agree(with("alice", "x"), true); same {
		t.Error("it is certain although more may be asked")
	}
	s.follow(with("alice", "x"))
	if v := s.value(lookupKey("user")); v != "alice" {
		t.Errorf("got %v, want what the followed context says", v)
	}
	s.complete()
	if n, same := s.agree(with("alice", "x"), true); n != 2 || !same {
		t.Errorf("once all was asked: %d, %v", n, same)
	}
}

// tracedSpan looks as those of OpenTelemetry do.
type tracedSpan struct{ recording *bool }

func (s tracedSpan) IsRecording() bool { return *s.recording }

// TestSameValue: what cannot be compared is the same only if it is one and the same.
func TestSameValue(t *testing.T) {
	type pair struct {
		name string
		more any
	}
	yes, no, list, table := true, false, []string{"a"}, map[string]int{}
	for _, test := range []struct {
		a, b any
		same bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", lookupKey("a"), false}, {nil, nil, true}, {nil, "a", false},
		{&yes, &yes, true}, {&yes, &no, false}, {list, list, true}, {list, []string{"a"}, false},
		{table, table, true}, {table, map[string]int{}, false}, {func() {}, func() {}, false},
		{pair{"a", 1}, pair{"a", 1}, true}, {pair{"a", 1}, pair{"a", 2}, false}, {pair{"a", list}, pair{"a", list}, true},
		{pair{"a", list}, pair{"a", []string{"a"}}, false}, {[1]any{list}, [1]any{list}, true}, {[1]any{list}, [1]any{table}, false},
		{tracedSpan{&yes}, tracedSpan{&no}, true}, {tracedSpan{&yes}, nil, false},
	} {
		if got := sameValue(test.a, test.b); got != test.same {
			t.Errorf("%#v and %#v: got %v", test.a, test.b, got)
		}
	}
}

package engine

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
	if n, same := s.agree(with("alice", "y"), false); n != 0 || same != Same {
		t.Errorf("before anything was asked: %d, %v", n, same)
	}
	if v := s.value(lookupKey("tenant")); v != "x" {
		t.Errorf("got %v", v)
	}
	if _, same := s.agree(with("bob", "y"), false); same != Different {
		t.Error("another tenant counts as the same")
	}
	if n, same := s.agree(with("alice", "x"), false); n != 1 || same != Same {
		t.Errorf("the same tenant: %d, %v", n, same)
	}
	if _, same := s.agree(with("alice", "x"), true); same != PerhapsSame {
		t.Error("it is certain although more may be asked")
	}
	s.follow(with("alice", "x"))
	if v := s.value(lookupKey("user")); v != "alice" {
		t.Errorf("got %v, want what the followed context says", v)
	}
	s.complete()
	if n, same := s.agree(with("alice", "x"), true); n != 2 || same != Same {
		t.Errorf("once all was asked: %d, %v", n, same)
	}
}

// tracedSpan looks as those of OpenTelemetry do.
type tracedSpan struct{ recording *bool }

func (s tracedSpan) IsRecording() bool { return *s.recording }

// TestCompareValues: what cannot be compared is the same only if it is one and the same,
// and different only in what can be compared.
func TestCompareValues(t *testing.T) {
	type pair struct {
		name string
		more any
	}
	yes, no, list, table := true, false, []string{"a"}, map[string]int{}
	for _, test := range []struct {
		a, b any
		want Sameness
	}{
		{"a", "a", Same}, {"a", "b", Different}, {"a", lookupKey("a"), Different}, {nil, nil, Same}, {nil, "a", Different},
		{&yes, &yes, Same}, {&yes, &no, PerhapsSame}, {(*bool)(nil), &yes, Different}, {(*bool)(nil), (*bool)(nil), Same},
		{list, list, Same}, {list, []string{"a"}, PerhapsSame}, {list, list[:0], PerhapsSame},
		{table, table, Same}, {table, map[string]int{}, PerhapsSame}, {func() {}, func() {}, PerhapsSame},
		{pair{"a", 1}, pair{"a", 1}, Same}, {pair{"a", 1}, pair{"a", 2}, Different}, {pair{"a", list}, pair{"a", list}, Same},
		{pair{"a", list}, pair{"a", []string{"a"}}, PerhapsSame}, {pair{"b", list}, pair{"a", []string{"a"}}, Different},
		{[1]any{list}, [1]any{list}, Same}, {[1]any{list}, [1]any{table}, Different},
		{tracedSpan{&yes}, tracedSpan{&no}, Same}, {tracedSpan{&yes}, nil, Different},
	} {
		if got := CompareContextValues(test.a, test.b); got != test.want {
			t.Errorf("%#v and %#v: got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// comparer is a Transport whose calls are known to look one key up.
type comparer struct{ Transport }

func (comparer) SameCall(Transport) Sameness { return Same }
func (comparer) Told(any) bool               { return false }

func (comparer) SameContext(a, b context.Context) Sameness {
	return CompareValues(a.Value(lookupKey("user")), b.Value(lookupKey("user")))
}

// TestCallsThatLookedNothingUp: a call that has not been sent yet is compared by what
// calls of its method look up; once it has, by what it did look up.
func TestCallsThatLookedNothingUp(t *testing.T) {
	as := func(user string) context.Context { return context.WithValue(t.Context(), lookupKey("user"), user) }
	op := &Operation{Transport: comparer{}}
	c := &compared{op: op, ctx: as("bob"), looks: &lookups{ctx: as("bob"), told: op.Transport.(Comparer).Told}}
	if _, same := c.compare(as("alice"), op); same != Different {
		t.Errorf("a call of another user: %v", same)
	}
	if _, same := c.compare(as("bob"), op); same != Same {
		t.Errorf("a call of the same user: %v", same)
	}
	c.looks.complete()
	if _, same := c.compare(as("alice"), op); same != Same {
		t.Errorf("a call that did not look at the user: %v", same)
	}
}

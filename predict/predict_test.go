package predict

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func identity(s string) string { return s }

func mustTable(t testing.TB, cfg TableConfig[string]) *Table[string] {
	table, err := NewTable(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// entryOf returns what a table has counted for a key, without a principal.
func entryOf[Req any](t *testing.T, table *Table[Req], key string) *entry {
	e, ok := table.entries.get(cacheKey{key: key})
	if !ok {
		t.Fatalf("nothing is known of key %q", key)
	}
	return e
}

type principalKey struct{}

func as(name string) context.Context {
	return context.WithValue(context.Background(), principalKey{}, name)
}

func principal(ctx context.Context) string { s, _ := ctx.Value(principalKey{}).(string); return s }

// fact is a confirmed response, as those of a request.
type fact struct{ request, response any }

func TestPredictors(t *testing.T) {
	upper := Func(func(_ context.Context, n int) (string, bool) { return fmt.Sprint("f", n), n > 0 })
	tests := []struct {
		name    string
		p       Predictor
		learn   []fact
		request any
		want    []any
	}{
		{"constant", Constant(7), nil, "x", []any{7}},
		{"constant learns nothing", Constant(7), []fact{{"x", 8}}, "x", []any{7}},
		{"function", upper, nil, 3, []any{"f3"}},
		{"function has no guess", upper, nil, 0, nil},
		{"function of another type", upper, nil, "3", nil},
		{"function of nothing", upper, nil, nil, nil},
		{"last value, unknown", LastValue(identity, 2), nil, "a", nil},
		{"last value", LastValue(identity, 2), []fact{{"a", 1}, {"b", 2}, {"a", 3}}, "a", []any{3}},
		{"last value, default bound", LastValue(identity, 0), []fact{{"a", 1}, {"b", 2}, {"c", 3}}, "a", []any{1}},
		{"last value, wrong types", LastValue(identity, 2), []fact{{1, 1}, {nil, 1}, {"a", nil}}, "a", nil},
		{"last value, asked with a wrong type", LastValue(identity, 2), []fact{{"a", 1}}, 5, nil},
		{"chain takes the first", Chain(LastValue(identity, 2), Constant("c")), []fact{{"a", 1}}, "a", []any{1}},
		{"chain goes on", Chain(LastValue(identity, 2), Constant("c")), []fact{{"a", 1}}, "b", []any{"c"}},
		{"chain, no guess", Chain(), nil, "b", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range tt.learn {
				tt.p.Learn(t.Context(), f.request, f.response)
			}
			if diff := cmp.Diff(tt.want, tt.p.Predict(t.Context(), tt.request)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	tests := []struct {
		name  string
		cfg   TableConfig[string]
		learn string // a character is a response for key "k"
		want  string
	}{
		{"nothing known", TableConfig[string]{}, "", ""},
		{"one response", TableConfig[string]{}, "a", "a"},
		{"majority", TableConfig[string]{}, "abaab", "a"},
		{"equal shares: the latest", TableConfig[string]{}, "ab", "b"},
		{"too small a share", TableConfig[string]{}, "abc", ""},
		{"a smaller share will do", TableConfig[string]{MinShare: 0.3}, "abc", "c"},
		{"several", TableConfig[string]{Guesses: 2, MinShare: 0.2}, "aaabbc", "ab"},
		{"several, by share", TableConfig[string]{Guesses: 3, MinShare: 0.3}, "aaabbc", "ab"},
		{"too few responses", TableConfig[string]{MinResponses: 3}, "aa", ""},
		{"enough responses", TableConfig[string]{MinResponses: 3}, "aaa", "a"},
		{"more values than counters", TableConfig[string]{MaxValues: 1, MinShare: 0.1}, "aabaca", "a"},
		{"what is new replaces what is rare", TableConfig[string]{MaxValues: 1, MinShare: 0.1}, "abb", "b"},
		{"the recent weighs more", TableConfig[string]{Window: 4}, "aaaabbbbb", "b"},
		{"without a window it would not", TableConfig[string]{Window: 100}, "aaaaaabbbbb", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Key = identity
			table := mustTable(t, tt.cfg)
			for _, r := range tt.learn {
				table.Learn(t.Context(), "k", string(r))
			}
			got := ""
			for _, g := range table.Predict(t.Context(), "k") {
				got += g.(string)
			}
			if got != tt.want {
				t.Errorf("predicts %q, want %q", got, tt.want)
			}
			if g := table.Predict(t.Context(), "other"); g != nil {
				t.Errorf("predicts %v for another key", g)
			}
		})
	}
}

func TestTableIgnores(t *testing.T) {
	table := mustTable(t, TableConfig[string]{Key: identity, MaxEntries: 1})
	table.Learn(t.Context(), 5, "x")
	table.Learn(t.Context(), nil, "x")
	table.Learn(t.Context(), "k", nil)
	if got := table.Predict(t.Context(), "k"); got != nil {
		t.Errorf("predicts %v", got)
	}
	table.Learn(t.Context(), "k", "x")
	if got := table.Predict(t.Context(), 5); got != nil {
		t.Errorf("predicts %v for a request of another type", got)
	}
}

func TestTableConfig(t *testing.T) {
	for name, cfg := range map[string]TableConfig[string]{
		"no key":           {},
		"share above 1":    {Key: identity, MinShare: 1.1},
		"negative share":   {Key: identity, MinShare: -0.1},
		"share not number": {Key: identity, MinShare: math.NaN()},
		"negative limit":   {Key: identity, MaxValues: -1},
	} {
		if _, err := NewTable(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestTableNeverOverestimates compares shares with exact counts.
func TestTableNeverOverestimates(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		cfg := TableConfig[string]{
			Key: identity, MaxValues: 1 + rnd.IntN(4), MinShare: 0.05 + 0.9*rnd.Float64(), Guesses: 5, Window: math.MaxInt,
		}
		table := mustTable(t, cfg)
		exact, n := map[int]int{}, 1+rnd.IntN(60)
		for range n {
			v := min(rnd.IntN(6), rnd.IntN(6))
			exact[v]++
			table.Learn(t.Context(), "k", v)
		}
		for _, g := range table.Predict(t.Context(), "k") {
			if share := float64(exact[g.(int)]) / float64(n); share < cfg.MinShare {
				t.Fatalf("%+v: predicts %v with a share of %v in %v", cfg, g, share, exact)
			}
		}
		e := entryOf(t, table, "k")
		for v, times := range exact {
			found := false
			for _, c := range e.values {
				found = found || c.value == v
			}
			if !found && times*(cfg.MaxValues+1) > n {
				t.Fatalf("%+v: forgot %d, %d times of %d", cfg, v, times, n)
			}
		}
	}
}

func TestProtocolBuffers(t *testing.T) {
	request := wrapperspb.String("k")
	key := func(r *wrapperspb.StringValue) string { return r.GetValue() }
	table, err := NewTable(TableConfig[*wrapperspb.StringValue]{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Predictor{"last value": LastValue(key, 2), "table": table} {
		t.Run(name, func(t *testing.T) {
			response, err := structpb.NewStruct(map[string]any{"a": 1.0, "b": 2.0, "c": "x"})
			if err != nil {
				t.Fatal(err)
			}
			want := proto.Clone(response)
			p.Learn(t.Context(), request, response)
			p.Learn(t.Context(), request, proto.Clone(response)) // equal, of another identity
			response.Fields["a"] = structpb.NewStringValue("changed by its owner")
			p.Learn(t.Context(), wrapperspb.Int64(5), response)
			if diff := cmp.Diff([]any{want}, p.Predict(t.Context(), request), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
	e := entryOf(t, table, "k")
	if len(e.values) != 1 || e.values[0].count != 2 {
		t.Errorf("equal messages are counted apart: %v", e.values)
	}
}

func TestPerPrincipal(t *testing.T) {
	p := PerPrincipal(principal, 2, func() Predictor { return LastValue(identity, 10) })
	p.Learn(as("ann"), "balance", 1)
	p.Learn(as("bob"), "balance", 2)
	p.Learn(as(""), "balance", 3)
	for who, want := range map[string][]any{"ann": {1}, "bob": {2}, "": nil} {
		if diff := cmp.Diff(want, p.Predict(as(who), "balance")); diff != "" {
			t.Errorf("as %q: %s", who, diff)
		}
	}
	if got := p.Predict(as("eve"), "balance"); got != nil {
		t.Errorf("eve is predicted %v", got)
	}
	for i := range 1000 {
		p.Learn(as(fmt.Sprint("p", i)), "balance", 1)
	}
	if n := len(maps.Collect(p.(*perPrincipal).predictors.c.All())); n > 2 {
		t.Errorf("it holds the predictors of %d principals, more than 2", n)
	}
}

// TestChainLearns: all of a chain learn, not only the one that predicts.
func TestChainLearns(t *testing.T) {
	first, second := LastValue(identity, 2), LastValue(identity, 2)
	Chain(first, Constant(7), second).Learn(t.Context(), "a", 1)
	for _, p := range []Predictor{first, second} {
		if got := p.Predict(t.Context(), "a"); len(got) != 1 || got[0] != 1 {
			t.Errorf("predicts %v", got)
		}
	}
}

func TestConstructorsRejectNil(t *testing.T) {
	for name, f := range map[string]func(){
		"Func":         func() { Func[int, int](nil) },
		"LastValue":    func() { LastValue[int](nil, 1) },
		"Chain":        func() { Chain(nil) },
		"PerPrincipal": func() { PerPrincipal(nil, 1, func() Predictor { return Chain() }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s accepts nil", name)
				}
			}()
			f()
		}()
	}
}

// TestConcurrency is for the race detector.
func TestConcurrency(t *testing.T) {
	table := mustTable(t, TableConfig[string]{Key: identity, MaxEntries: 4, MaxValues: 3, MinShare: 0.1, Guesses: 3,
		Window: 10})
	predictors := []Predictor{
		table, LastValue(identity, 4), Chain(LastValue(identity, 2), Constant(1)),
		PerPrincipal(principal, 3, func() Predictor { return LastValue(identity, 4) }),
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 0))
			for range 500 {
				key, ctx := fmt.Sprint(rnd.IntN(6)), as(fmt.Sprint("p", rnd.IntN(5)))
				for _, p := range predictors {
					if rnd.IntN(2) == 0 {
						p.Learn(ctx, key, wrapperspb.Int64(int64(rnd.IntN(5))))
						continue
					}
					for _, guess := range p.Predict(ctx, key) {
						_ = fmt.Sprint(guess)
					}
				}
			}
		})
	}
	wg.Wait()
}

package predict

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
)

func outgoing(kv ...string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), kv...)
}

func incoming(kv ...string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs(kv...))
}

// TestPrincipals: what one learns another does not see, unless it is public.
func TestPrincipals(t *testing.T) {
	ann := outgoing("authorization", "Bearer ann", "x-request-id", "1")
	tests := []struct {
		name   string
		asker  context.Context
		shared bool
	}{
		{"the same", ann, true},
		{"another request of the same", outgoing("authorization", "Bearer ann", "x-request-id", "2"), true},
		{"another", outgoing("authorization", "Bearer bob"), false},
		{"nobody", context.Background(), false},
		{"the same secret elsewhere", outgoing("cookie", "Bearer ann"), false},
		{"more credentials", outgoing("authorization", "Bearer ann", "cookie", "a=b"), false},
		{"twice", outgoing("authorization", "Bearer ann", "authorization", "Bearer ann"), false},
		{"somebody served", incoming("authorization", "Bearer ann"), false},
		{"the same for somebody served", metadata.NewIncomingContext(ann, metadata.Pairs("cookie", "a=b")), false},
		{"of the predictor's own", outgoing("authorization", "Bearer ann", "X-Tenant", "t"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			private := LastConfig[string]{Key: identity, Principal: Credentials("x-TENANT")}
			for _, public := range []bool{false, true} {
				if public {
					private.Principal = nil
				}
				private.Public = public
				last, err := NewLast(private)
				if err != nil {
					t.Fatal(err)
				}
				table := mustTable(t, TableConfig[string]{Key: identity, Principal: private.Principal, Public: public})
				for _, p := range []Predictor{last, table} {
					p.Learn(ann, "account", 7)
					if got := p.Predict(tt.asker, "account") != nil; got != (tt.shared || public) {
						t.Errorf("%T, public %v: predicts %v", p, public, got)
					}
				}
			}
		})
	}
}

// TestOrdinaryPredictorsArePrivate: without a word about principals.
func TestOrdinaryPredictorsArePrivate(t *testing.T) {
	for name, p := range map[string]Predictor{
		"last value": LastValue(identity, 10),
		"table":      mustTable(t, TableConfig[string]{Key: identity}),
	} {
		p.Learn(incoming("cookie", "session=1"), "k", 1)
		p.Learn(outgoing("authorization", "Basic x"), "k", 2)
		p.Learn(context.Background(), "k", 3)
		for want, ctx := range map[int]context.Context{
			1: incoming("cookie", "session=1"), 2: outgoing("authorization", "Basic x"), 3: context.Background(),
		} {
			if got := p.Predict(ctx, "k"); len(got) != 1 || got[0] != want {
				t.Errorf("%s: predicts %v, want %d", name, got, want)
			}
		}
		if got := p.Predict(outgoing("authorization", "Basic y"), "k"); got != nil {
			t.Errorf("%s: somebody else is predicted %v", name, got)
		}
	}
}

func TestNoPrincipal(t *testing.T) {
	named := func(ctx context.Context) (string, bool) { return principal(ctx), principal(ctx) != "" }
	last, err := NewLast(LastConfig[string]{Key: identity, Principal: named})
	if err != nil {
		t.Fatal(err)
	}
	last.Learn(as(""), "k", 1)
	if got := last.Predict(as(""), "k"); got != nil {
		t.Errorf("predicts %v for nobody", got)
	}
	if n, _ := held(last.values); n != 0 {
		t.Errorf("learnt for nobody")
	}
	if _, err := NewLast(LastConfig[string]{Key: identity, Principal: named, Public: true}); err == nil {
		t.Error("accepts a principal of what is public")
	}
	if _, err := NewTable(TableConfig[string]{Key: identity, Principal: named, Public: true}); err == nil {
		t.Error("accepts a principal of what is public")
	}
}

// TestIDsDiffer: no two sets of credentials make one id.
func TestIDsDiffer(t *testing.T) {
	seen := make(map[string]int)
	p := Credentials()
	for i, ctx := range []context.Context{
		context.Background(), outgoing("authorization", "ab"), outgoing("authorization", "a", "authorization", "b"),
		outgoing("authorization", "b", "authorization", "a"), outgoing("authorization", ""), outgoing("cookie", "ab"),
		incoming("authorization", "ab"), outgoing("authorization", "a", "cookie", "b"),
		outgoing("authorization", "a\x01\x01b"),
	} {
		id, ok := p(ctx)
		if first, known := seen[id]; known || !ok {
			t.Errorf("%d has the id of %d", i, first)
		}
		seen[id] = i
	}
}

// TestSecretsAreHashed: a key has nothing of the secret, and nobody who knows
// the secret can tell it without the predictor's own key.
func TestSecretsAreHashed(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	var hashes []principalHash
	for range 2 {
		s, err := newScope(false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			k, ok := s.key(outgoing("authorization", secret), "k")
			if !ok || k.who == (principalHash{}) || strings.Contains(string(k.who[:]), secret[:8]) {
				t.Fatalf("key %v, %v", k, ok)
			}
			hashes = append(hashes, k.who)
		}
	}
	if hashes = slices.Compact(hashes); len(hashes) != 2 {
		t.Errorf("%d hashes of one id by two predictors", len(hashes))
	}
}

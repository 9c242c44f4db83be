package bft

import (
	"crypto/ed25519"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

func TestLayouts(t *testing.T) {
	r := Request{Client: 7, Session: 2, Acked: 3, First: 4, Operations: []Operation{
		{Command: []byte("set"), After: 3, Conditions: []Condition{{Number: 3, Digest: Digest{1}}}}}}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	d := directory(2)
	d.Epoch, d.Gone = 3, []Key{{9}}
	wiretest.Layouts(t, wiretest.Sample("a request, signed", Requests().spoken, spoken[Request]{"group", r}, all),
		wiretest.Sample("change", changeLayout, Change{Replace, Party{3, Key{7}, "host:1"}}),
		wiretest.Sample("changed", changedLayout, Changed{4, "no"}),
		wiretest.Sample("members", membersLayout, *d))
}

// TestWhatIsSignedMeansNothingElse changes each thing that a signature is about.
func TestWhatIsSignedMeansNothingElse(t *testing.T) {
	var secrets Secrets
	for name, v := range map[string]Verifier{"Ed25519": Ed25519{}, "secrets": &secrets} {
		one, two := secrets.Signer(1), secrets.Signer(2)
		if name == "Ed25519" {
			one = NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)))
			two = NewSigner(ed25519.NewKeyFromSeed(append(make([]byte, 31), 1)))
		}
		word := func(c *wirefmt.Coder, n *uint64) { wirefmt.Uint(c, n) }
		st, other := NewStatement("word", word), NewStatement("oath", word)
		here, there := NewScheme("here", v), NewScheme("there", v)
		s := st.Sign(here, one, 7)
		read := func(st *Statement[uint64], sc *Scheme, s Signed[uint64]) Signed[uint64] {
			l := wirefmt.NewLayout("test", st.Fields(sc))
			got, err := l.Decode(l.Encode(s))
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := read(st, here, s); !got.By(one.Key()) || got.By(two.Key()) || *got.Body() != 7 {
			t.Errorf("%s: what was signed is not what is read", name)
		}
		for what, got := range map[string]Signed[uint64]{
			"group": read(st, there, s), "kind": read(other, here, s),
			"body": read(st, here, st.Forge(one.Key(), s.seal.signature, 8)),
			"key":  read(st, here, st.Forge(two.Key(), s.seal.signature, 7)),
		} {
			if got.By(one.Key()) || got.By(two.Key()) {
				t.Errorf("%s: with another %s the signature holds", name, what)
			}
		}
		if st.Forge(one.Key(), s.seal.signature, 7).seal.proven {
			t.Errorf("%s: what is forged is marked", name)
		}
		c := Join([]Signed[uint64]{s, s, st.Sign(here, two, 7), st.Sign(here, two, 8)})
		if n := c.Count(func(Key) bool { return true }); n != 2 {
			t.Errorf("%s: %d have signed, want 2", name, n)
		}
	}
}

package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/seed"
)

// scrub goes through the whole state, or up to a crash, and returns what it finds.
func scrub(w *world, rnd *rand.Rand, meanwhile func()) []Damage {
	var found []Damage
	for x := w.state.Scrub(); !x.Done() && x.s == w.state; {
		found = append(found, x.Step(1+rnd.IntN(100))...)
		w.end()
		meanwhile()
	}
	return found
}

// TestScrubFindsNothing where nothing is wrong, whatever goes on meanwhile.
func TestScrubFindsNothing(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 30)); s++ {
		p := newProgram(t, s)
		p.keys = 1000
		p.fill(500)
		for range 10 {
			found := scrub(p.w, p.rnd, func() {
				for range p.rnd.IntN(20) {
					p.step()
				}
			})
			if len(found) > 0 {
				t.Fatalf("seed %d: %v", s, found)
			}
		}
	}
}

// hurt changes something of what the disk has of a state's base or its tree, and returns the key,
// or "" for the tree.
func hurt(p *program) (key string) {
	var places []string
	p.w.has.Scan(func(k, _ string) bool {
		if k[1] == kindValue || k[1] == kindTree {
			places = append(places, k)
		}
		return true
	})
	at := places[p.rnd.IntN(len(places))]
	if p.rnd.IntN(2) == 0 { // most places are keys
		trees := slices.DeleteFunc(slices.Clone(places), func(k string) bool { return k[1] != kindTree })
		at = trees[p.rnd.IntN(len(trees))]
	}
	if at[1] == kindValue {
		key = at[2:]
	}
	v, _ := p.w.has.Get(at)
	switch p.rnd.IntN(4) {
	case 0:
		p.w.has.Delete(at)
	case 1:
		p.w.has.Set("pvstray", "value")
		return "stray"
	case 2:
		p.w.has.Set(at, v+"x")
	default:
		b := []byte(v + " ")
		b[p.rnd.IntN(len(b))] ^= 1
		p.w.has.Set(at, string(b))
	}
	return key
}

// TestScrub hurts a disk: what is wrong is named, and repaired by what differs from another
// replica.
func TestScrub(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 60)); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			p, other := newProgram(t, s), newProgram(t, s)
			for _, q := range []*program{p, other} {
				q.keys = []int{20, 400, 4000}[s%3]
				q.fill(q.keys)
				q.checkpoint()
				q.fill(10)
				q.w.restart(t)
				q.n.layers, q.n.names = nil, nil
			}
			key := hurt(p)
			named := func(d Damage) bool { return string(d.Key) == key && strings.Contains(d.String(), d.Reason) }
			found := scrub(p.w, p.rnd, func() {})
			if !p.w.state.changed[key] && len(found) == 0 || !slices.ContainsFunc(found, named) && len(found) > 0 {
				t.Fatalf("the key %q (the tree, if it is none) is hurt, found is %v", key, found)
			}
			p.w.state.Checkpoint(p.n.last + 1)
			if m, _ := p.w.state.At(p.n.last + 1); m.Digest() != all(p.w.state).digest() {
				t.Fatalf("the digest is not that of what the disk has")
			}
			other.n.last++
			want := other.w.state.Checkpoint(other.n.last)
			other.n.checkpoints[other.n.last] = other.n.base
			p.w.end()
			other.w.end()
			x := &transfer{from: other, to: p, rnd: p.rnd}
			for x.begin(); !x.fetch.Done(); {
				x.asked = append(x.asked, x.fetch.Wants(3)...)
				if len(x.asked) > 0 {
					x.answer()
				}
				p.w.end()
			}
			if m, _ := p.w.state.At(other.n.last); m.Digest() != want || !maps.Equal(all(p.w.state), other.n.base) {
				t.Fatal("what was hurt was not repaired")
			}
			if found := scrub(p.w, p.rnd, func() {}); len(found) > 0 || x.pages > 12 {
				t.Fatalf("after a repair with %d pages: %v", x.pages, found)
			}
		})
	}
}

package spectree

import (
	"fmt"
	"testing"
)

// TestTwinsInTheRecord checks that a call is found by its key, and by its place once it is
// confirmed, as long as it is in the record: whatever becomes of another one that got the same key,
// since two lanes turned out to be shared, or to have swapped their names.
func TestTwinsInTheRecord(t *testing.T) {
	for _, others := range []int{0, 2 * recordScan} { // in a list, in maps
		for _, away := range []struct {
			name string
			do   func(r *record, c *Call)
		}{
			{"removed", func(r *record, c *Call) { r.remove(c) }},
			{"renamed", func(r *record, c *Call) { r.rekey(c, key{lane: "/2", op: "a"}) }},
		} {
			t.Run(fmt.Sprintf("%s beside %d", away.name, others), func(t *testing.T) {
				var r record
				for i := range others {
					r.add(&Call{key: key{op: "other", occ: i}})
				}
				after := (*chain)(nil).push(new(Call))
				first := &Call{key: key{op: "a", eff: after}, send: sentPlain}
				second := &Call{key: key{op: "a"}, send: sentPlain}
				r.add(first)
				r.add(second)
				if c := r.confirmedAt(second.key); c != first {
					t.Errorf("at the place of both is %p", c)
				}
				r.rekey(first, second.key)
				away.do(&r, first)
				if c := r.find(second.key); c != second {
					t.Errorf("under the key is %p, not the call that has it", c)
				}
				if c := r.confirmedAt(second.key); c != second {
					t.Errorf("at the place is %p, not the call that is there", c)
				}
			})
		}
	}
}

// TestIrrevocablesOfOnePlace checks that the index of calls that took effect
// finds what a search through all would, where two are of one place.
func TestIrrevocablesOfOnePlace(t *testing.T) {
	for _, removed := range []int{0, 1} {
		var s irrevocables
		pair := []*Call{{key: key{op: "w"}}, {key: key{op: "w", eff: new(chain)}}}
		for _, c := range pair {
			s.add(c)
		}
		for i := range recordScan {
			s.add(&Call{key: key{op: fmt.Sprint("other ", i)}})
		}
		if s.index == nil {
			t.Fatal("there is no index yet")
		}
		if got := s.find(pair[1].key); got != pair[0] {
			t.Errorf("found %p, want the first, %p", got, pair[0])
		}
		s.remove(pair[removed])
		if got := s.find(pair[0].key); got != pair[1-removed] {
			t.Errorf("with call %d removed found %p, want the other, %p", removed, got, pair[1-removed])
		}
	}
}

package spectree

import (
	"fmt"
	"testing"
)

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

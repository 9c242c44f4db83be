package kit

import (
	"fmt"

	"github.com/foresay/foresay/smr"
)

// ApplyAll applies the entries of one slot, in order, in protocols that agree on batches; each gets
// the answer to each of them. Otherwise it is Apply.
func (s *State) ApplyAll(slot smr.Slot, entries []Entry, each func(i int, r Reply)) {
	if slot <= s.applied {
		panic(fmt.Sprintf("smr: apply slot %d after slot %d", slot, s.applied))
	}
	for i, e := range entries {
		s.applied = slot - 1
		each(i, s.Apply(slot, e))
	}
	s.applied = slot
}

// Generation counts the changes of the members: it is higher after each one that had an effect, by
// one. What it is at the beginning depends on the group.
func (s *State) Generation() uint64 {
	return uint64(len(s.members.now)) + 2*uint64(len(s.members.removed))
}

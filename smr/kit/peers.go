package kit

import (
	"slices"

	"github.com/foresay/foresay/smr"
)

// Peers returns the members that the replica has heard of: those of its configuration, and, if it
// joins, those that they named.
func (a *Admission) Peers() []smr.Member { return slices.Clone(a.members) }

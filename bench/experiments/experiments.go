package experiments

import (
	"slices"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/byzantine"
	"github.com/foresay/foresay/bench/calls"
	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/bench/geostore/simulated"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/replicated/domino"
)

// All returns all experiments, in the order in which they are best read.
func All() []bench.Experiment {
	return slices.Concat(calls.Experiments(), domino.Experiments(), replicated.Experiments(), byzantine.Experiments(),
		geostore.Experiments(), simulated.Experiments())
}

// Lookup returns the experiment of that name.
func Lookup(name string) (bench.Experiment, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e bench.Experiment) bool { return e.Name == name })
	if i < 0 {
		return bench.Experiment{}, false
	}
	return all[i], true
}

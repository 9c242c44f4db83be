package bench

import "slices"

// All returns all experiments, in the order in which they are best read.
func All() []Experiment {
	return slices.Concat(callExperiments(), replicationExperiments(), storeExperiments())
}

// Lookup returns the experiment of that name.
func Lookup(name string) (Experiment, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name })
	if i < 0 {
		return Experiment{}, false
	}
	return all[i], true
}

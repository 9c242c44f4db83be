package randtest

import (
	"slices"
	"testing"

	planting "github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/plant/treebugs"
)

// treePlants returns the tree's own bugs, as they are named here, but for those about predicated
// calls: gRPC methods have no sessions, so none of their calls is. See TestSessionPrograms.
func treePlants() []planting.Bug {
	bugs := slices.DeleteFunc(treebugs.Bugs(), func(b planting.Bug) bool {
		return slices.ContainsFunc(treebugs.PredicatedBugs(), func(p planting.Bug) bool { return p.Name == b.Name })
	})
	for i := range bugs {
		bugs[i].Name = "tree " + bugs[i].Name
	}
	return bugs
}

// compilePlants compiles this package's tests with all bugs planted, each of
// which waits for the environment to name it.
func compilePlants(t *testing.T) string {
	t.Helper()
	o := planting.NewOverlay(t)
	for _, p := range plants() {
		o.Plant(p.name, p.dir, p.old, p.new)
	}
	for _, b := range treePlants() {
		o.PlantBug(b)
	}
	return o.Compile("internal/randtest")
}

// TestPlantsFit: each planted bug finds its place in the source. It tells of all that do not at
// once, and compiles nothing.
func TestPlantsFit(t *testing.T) {
	all := plants()
	for _, p := range slices.Concat(namedPlants(), queuePlants(), guardPlants(), contextPlants()) {
		all = append(all, p.plant)
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) { planting.NewOverlay(t).Plant(p.name, p.dir, p.old, p.new) })
	}
}

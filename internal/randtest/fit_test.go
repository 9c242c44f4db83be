package randtest

import (
	"slices"
	"testing"

	planting "github.com/foresay/foresay/internal/plant"
)

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

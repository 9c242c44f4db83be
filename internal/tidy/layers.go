package tidy

import (
	"strings"
)

// layer is how far up a package stands. A package imports packages of its own
// layer and of the layers below.
type layer int

const (
	generated layer = iota // .proto files and what they generate
	contract               // vocabularies and small machines that everything shares
	pure                   // protocols and data structures without time, threads or I/O
	runner                 // what makes pure code run, and the engine
	assembly               // commands, benchmarks, examples: what knows all names
)

func (l layer) String() string {
	return [...]string{"generated", "contract", "pure", "runner", "assembly"}[l]
}

// room is a place in the tree.
type room struct {
	pattern string // a directory; "x/..." is x and all below
	layer   layer
	// protocol marks an implementation behind the protocol contract, which no
	// runner may know.
	protocol bool
}

// rooms lists every room of the house. The first pattern that fits a directory
// decides, so exceptions stand first.
func rooms() []room {
	return append([]room{
		{pattern: "api/...", layer: generated},
		{pattern: "protocol/...", layer: contract},
		{pattern: "quorum/...", layer: contract},
		{pattern: "clock/...", layer: contract},
		{pattern: "wan", layer: contract},
		{pattern: "workload/...", layer: contract},
		{pattern: "history/...", layer: contract},
		{pattern: "predict/...", layer: contract},
		{pattern: "internal/wirefmt/...", layer: contract},
		{pattern: "internal/diskid/...", layer: contract},
		{pattern: "internal/fieldpath/...", layer: contract},
		{pattern: "internal/nearest/...", layer: contract},
		{pattern: "internal/agenda/...", layer: contract},
		{pattern: "internal/plainerr/...", layer: contract},
		{pattern: "internal/msgtext/...", layer: contract},
		{pattern: "internal/processors/...", layer: contract},
		{pattern: "internal/heap/...", layer: contract},
		{pattern: "internal/memdir/...", layer: contract},
		{pattern: "internal/race/...", layer: contract},
		{pattern: "internal/seed/...", layer: contract},
		{pattern: "report", layer: contract},
		{pattern: "control", layer: contract},
		{pattern: "internal/usercode/...", layer: contract},

		{pattern: "smr/client/...", layer: runner},
		{pattern: "store/client/...", layer: runner},
		{pattern: "store/front/...", layer: runner},
		{pattern: "store/machine/...", layer: runner},
		{pattern: "bft/client/...", layer: runner},
		{pattern: "smr/smrtest/...", layer: runner},
		{pattern: "smr/smrsim/...", layer: runner},
		{pattern: "store/storedeploy/...", layer: runner},
		{pattern: "store/storetest/...", layer: runner},
		{pattern: "bft/bfttest/...", layer: runner},
		{pattern: "bft/bftdeploy/...", layer: runner},
		{pattern: "bft/bftsim/...", layer: runner},

		// What serves a group, or a store, knows all protocols.
		{pattern: "smr/service/...", layer: assembly},
		{pattern: "bft/service/...", layer: assembly},
		{pattern: "store/storeservice/...", layer: assembly},
		{pattern: "store/storeconfig/...", layer: assembly},

		{pattern: "keyspace/...", layer: pure},
		{pattern: "smr", layer: pure},
		{pattern: "smr/plan/...", layer: pure},
		{pattern: "smr/kit/...", layer: pure},
		{pattern: "store", layer: pure},
		{pattern: "store/gate/...", layer: pure},
		{pattern: "store/epoch/...", layer: pure},
		{pattern: "store/mvcc/...", layer: pure},
		{pattern: "store/plan/...", layer: pure},
		{pattern: "internal/delays/...", layer: pure},
		{pattern: "store/kit/...", layer: pure},
		{pattern: "bft", layer: pure},
		{pattern: "bft/sessions/...", layer: pure},
		{pattern: "bft/kit/...", layer: pure},
		{pattern: "bft/counter/...", layer: pure},
		{pattern: "specfs", layer: pure},
		{pattern: "specfs/tree/...", layer: pure},
		{pattern: "specfs/server/...", layer: pure},
		{pattern: "specfs/view/...", layer: pure},
		{pattern: "smr/...", layer: pure, protocol: true},
		{pattern: "store/...", layer: pure, protocol: true},
		{pattern: "bft/...", layer: pure, protocol: true},
		{pattern: "internal/spectree/...", layer: pure},
		{pattern: "internal/critpath/...", layer: pure},
	}, upperRooms()...)
}

// upperRooms are those that pure code does not see.
func upperRooms() []room {
	return []room{
		{pattern: ".", layer: runner},
		{pattern: "driver", layer: runner},
		{pattern: "internal/engine/...", layer: runner},
		{pattern: "specgrpc/...", layer: runner},
		{pattern: "observe/...", layer: runner},
		{pattern: "telemetry/...", layer: runner},
		{pattern: "dash/...", layer: runner},
		{pattern: "setup/...", layer: runner},
		{pattern: "sim/...", layer: runner},
		{pattern: "host/...", layer: runner},
		{pattern: "transport/...", layer: runner},
		{pattern: "wal/...", layer: runner},
		{pattern: "wan/...", layer: runner},
		{pattern: "internal/otlp/...", layer: runner},
		{pattern: "internal/callers/...", layer: runner},
		{pattern: "internal/cluster/...", layer: runner},
		{pattern: "replica/...", layer: runner},
		{pattern: "specfs/...", layer: runner},
		{pattern: "specproc/...", layer: runner},

		// Adapters are modules of their own, which tie a runner to another project.
		{pattern: "adapters/...", layer: assembly},
		{pattern: "bench/...", layer: assembly},
		{pattern: "cmd/...", layer: assembly},
		{pattern: "examples/...", layer: assembly},
		{pattern: "internal/catalog/...", layer: assembly},
		{pattern: "internal/cli/...", layer: assembly},
		{pattern: "internal/demo/...", layer: assembly},
		{pattern: "internal/plansim/...", layer: assembly},
		{pattern: "internal/storesim/...", layer: assembly},
		{pattern: "internal/plant/...", layer: assembly},
		{pattern: "internal/randtest/...", layer: assembly},
		{pattern: "internal/traceanalysis/...", layer: assembly},
		{pattern: "internal/tidy/...", layer: assembly},
		{pattern: "tools/...", layer: assembly},
	}
}

// roomOf returns the room that a directory lies in.
func roomOf(dir string) (room, bool) {
	for _, r := range rooms() {
		if within(r.pattern, dir) {
			return r, true
		}
	}
	return room{}, false
}

func within(pattern, dir string) bool {
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == top || strings.HasPrefix(dir, top+"/")
	}
	return dir == pattern
}

// checkLayers reports imports that go up: from a layer to a higher one, from a
// runner to a protocol, from a vocabulary to its children. Tests may import
// what they like.
func checkLayers(tree *tree, report *report) {
	for _, f := range tree.code() {
		from, ok := roomOf(f.dir)
		if !ok {
			report.at(f, f.ast.Package, "the directory %s has no layer: give it one in rooms, internal/tidy/layers.go", f.dir)
			continue
		}
		for spec, importPath := range f.imports() {
			dir, ok := tree.dirOf(importPath)
			if !ok {
				continue
			}
			to, ok := roomOf(dir)
			switch {
			case !ok: // reported where that package is
			case to.layer > from.layer:
				report.at(f, spec.Pos(), "imports %s, of the layer %s, from the layer %s below it", dir, to.layer, from.layer)
			case from.layer == runner && to.protocol:
				report.at(f, spec.Pos(), "imports the protocol %s from a runner", dir)
			case from.layer < runner && strings.HasPrefix(dir, f.dir+"/"):
				report.at(f, spec.Pos(), "imports its child %s from a vocabulary package", dir)
			}
		}
	}
}

// dirOf returns the directory of a package of the tree's module.
func (t *tree) dirOf(importPath string) (string, bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

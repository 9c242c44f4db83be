package tidy

import (
	"go/ast"
	"maps"
	"path"
	"slices"
)

// protocolExports returns names that users of a protocol's package need besides Protocol.
func protocolExports(dir string) []string {
	switch dir {
	case "smr/epaxos":
		return []string{"Interferer"}
	case "smr/raft":
		return []string{"NewPart", "Part", "PartConfig", "Machine", "State", "Position", "Hooks"}
	case "smr/domino":
		return []string{"New", "Options", "DirectOptions", "Direct", "Path", "Measured", "OnlyDFP", "OnlyDM"}
	}
	return nil
}

// checkExports reports names that a protocol's package exports besides Protocol and those of
// protocolExports. A package is a protocol if it has a function Protocol without parameters: nodes,
// messages and codec are in what that returns, so nobody else needs to name them.
func checkExports(tree *tree, report *report) {
	dirs, files := byDir(tree.files)
	for _, dir := range dirs {
		if !slices.ContainsFunc(files[dir], declaresProtocol) {
			continue
		}
		unused := map[string]bool{}
		for _, name := range protocolExports(dir) {
			unused[name] = true
		}
		for _, f := range files[dir] {
			if f.test {
				continue
			}
			for _, name := range packageLevel(f.ast) {
				switch {
				case unused[name.Name]:
					delete(unused, name.Name)
				case name.IsExported() && name.Name != "Protocol":
					report.at(f, name.Pos(), "exports %s: users of a protocol need its Protocol", name.Name)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(unused)) {
			report.add(path.Join(dir, "doc.go"), 0, "%s is listed as exported and does not exist", name)
		}
	}
}

func declaresProtocol(f *file) bool {
	return !f.test && slices.ContainsFunc(f.ast.Decls, func(decl ast.Decl) bool {
		fn, ok := decl.(*ast.FuncDecl)
		return ok && fn.Recv == nil && fn.Name.Name == "Protocol" && fn.Type.Params.NumFields() == 0
	})
}

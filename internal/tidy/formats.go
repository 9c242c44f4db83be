package tidy

import (
	"go/ast"
	"io/fs"
	"path"
)

// wiretestImport is the package with which formats are tested.
const wiretestImport = "internal/wirefmt/wiretest"

// checkFormats reports formats of messages that their packages do not test: each has the bytes of
// its messages in a golden file, so that a change of the format is a change of a file, and is
// fuzzed.
func checkFormats(tree *tree, report *report) {
	tested := map[string]map[string]bool{} // by directory, the functions of wiretest that are called
	for _, f := range tree.files {
		name := f.importName(tree.module + "/" + wiretestImport)
		if !f.test || name == "" {
			continue
		}
		if tested[f.dir] == nil {
			tested[f.dir] = map[string]bool{}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, function := range []string{"Codec", "Fuzz"} {
				if selects(n, name, function) {
					tested[f.dir][function] = true
				}
			}
			return true
		})
	}
	for _, f := range tree.files {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "NewFormat" {
				return true
			}
			for _, function := range []string{"Codec", "Fuzz"} {
				if !tested[f.dir][function] {
					report.at(f, n.Pos(), "no test of the package calls wiretest.%s for its format", function)
				}
			}
			const golden = "testdata/wire.golden"
			if _, err := fs.Stat(tree.fsys, path.Join(f.dir, golden)); err != nil {
				report.at(f, n.Pos(), "there is no %s with the bytes of the format's messages", golden)
			}
			return true
		})
	}
}

package tidy

import (
	"go/ast"
)

// checkSleep reports tests that sleep on the wall clock. It is a heuristic: a
// test in a directory whose tests import testing/synctest is taken to sleep in
// bubbles only, which helpers in other files may open for it.
func checkSleep(tree *tree, report *report) {
	bubbles := make(map[string]bool)
	for _, f := range tree.files {
		if f.test && f.importName("testing/synctest") != "" {
			bubbles[f.dir] = true
		}
	}
	for _, f := range tree.files {
		name := f.importName("time")
		if !f.test || name == "" || bubbles[f.dir] {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if selects(n, name, "Sleep") {
				report.at(f, n.Pos(), "sleeps on the wall clock: use a synctest bubble")
			}
			return true
		})
	}
}

// selects reports whether n is the selector pkg.name.
func selects(n ast.Node, pkg, name string) bool {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg
}

package tidy

import (
	"go/ast"
)

// checkRegistration reports init functions and imports for their side effect.
// embed is not one: its import only allows //go:embed.
func checkRegistration(tree *tree, report *report) {
	for _, f := range tree.files {
		for spec, importPath := range f.imports() {
			if spec.Name != nil && spec.Name.Name == "_" && importPath != "embed" {
				report.at(f, spec.Pos(), "imports %s for its side effect", importPath)
			}
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report.at(f, fn.Pos(), "has an init function: call it where it is needed")
			}
		}
	}
}

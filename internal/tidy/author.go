package tidy

import (
	"go/ast"
	"slices"
)

// authors are the names that the root package exports: what the author of a program needs. What an
// operator needs is in control and report, what a transport needs in driver.
func authors() []string {
	return []string{
		"Act", "All", "Any", "Barrier", "CallOption", "Do", "EqualBy", "ErrAbandoned", "ErrDiverged", "ErrEnded",
		"ErrForeignFuture", "ErrMisspeculated", "ErrNoQuorum", "ErrUnfinished", "ExecutionState", "Future", "Go", "Group",
		"Guess", "Loop", "Memo", "NewGroup", "OnCommit", "OnRollback", "Option", "PanicError", "Predict", "Predicting",
		"Quorum", "State", "Then", "WithDefaults", "WithLimits", "WithLogger", "WithName", "WithReport",
	}
}

// checkAuthors reports names of the root package that are not for the author of a program, and
// imports by which the engine's packages would know those above them: report knows none of them,
// control only report, and the engine neither the root nor driver.
func checkAuthors(tree *tree, report *report) {
	above := map[string][]string{
		"report":          {".", "control", "driver", "internal/engine"},
		"control":         {".", "driver", "internal/engine"},
		"internal/engine": {".", "driver"},
		"driver":          {"."},
		".":               {"driver"},
	}
	for _, f := range tree.code() {
		for spec, importPath := range f.imports() {
			if dir, ok := tree.dirOf(importPath); ok && slices.Contains(above[f.dir], dir) {
				report.at(f, spec.Pos(), "imports %s, which stands above it", dir)
			}
		}
		if f.dir != "." {
			continue
		}
		for _, name := range exported(f.ast) {
			if !slices.Contains(authors(), name.Name) {
				report.at(f, name.Pos(), "%s is not for the author of a program: it belongs in control, report or driver, or in "+
					"authors, internal/tidy/author.go", name.Name)
			}
		}
	}
}

// exported returns the exported names that a file declares, but for methods.
func exported(file *ast.File) []*ast.Ident {
	return slices.DeleteFunc(packageLevel(file), func(name *ast.Ident) bool { return !name.IsExported() })
}

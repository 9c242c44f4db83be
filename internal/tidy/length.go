package tidy

import (
	"bytes"
	"go/ast"
	"go/token"
)

// The limits, in lines.
const (
	maxFile         = 600
	maxFunction     = 70
	maxTestFunction = 120
	maxFlatCase     = 8
)

// checkLength reports files and functions that are too long. A function's
// length is its lines from func to the closing brace, less those of flat
// switches. Waivers stand at the package clause and at the func line.
func checkLength(tree *tree, report *report) {
	for _, f := range tree.files {
		if n := bytes.Count(f.src, []byte("\n")); n > maxFile {
			report.at(f, f.ast.Package, "the file has %d lines, more than %d", n, maxFile)
		}
		limit := maxFunction
		if f.test {
			limit = maxTestFunction
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := functionLength(tree.fset, fn); n > limit {
				report.at(f, fn.Type.Func, "the function %s has %d lines, more than %d", fn.Name.Name, n, limit)
			}
		}
	}
}

func functionLength(fset *token.FileSet, fn *ast.FuncDecl) int {
	n := lines(fset, fn.Type.Func, fn.Body.End())
	for _, statement := range fn.Body.List {
		if flat(fset, statement) {
			n -= lines(fset, statement.Pos(), statement.End())
		}
	}
	return n
}

// flat tells whether a statement of a function's body is a switch whose cases
// are all short: it is long only because there are many.
func flat(fset *token.FileSet, statement ast.Stmt) bool {
	var body *ast.BlockStmt
	switch s := statement.(type) {
	case *ast.SwitchStmt:
		body = s.Body
	case *ast.TypeSwitchStmt:
		body = s.Body
	case *ast.SelectStmt:
		body = s.Body
	default:
		return false
	}
	for _, clause := range body.List {
		if lines(fset, clause.Pos(), clause.End()) > maxFlatCase {
			return false
		}
	}
	return true
}

// lines returns the number of lines that pos to end spans.
func lines(fset *token.FileSet, pos, end token.Pos) int {
	return fset.Position(end).Line - fset.Position(pos).Line + 1
}

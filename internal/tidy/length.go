package tidy

import (
	"bytes"
	"go/ast"
	"go/token"
	"slices"
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
// switches and flat tables. Waivers stand at the package clause and at the func line.
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
		ast.Inspect(statement, func(node ast.Node) bool {
			if node == nil || !flat(fset, node, node == ast.Node(statement)) {
				return true
			}
			n -= lines(fset, node.Pos(), node.End())
			return false
		})
	}
	return n
}

// flat reports whether a node is a table, or a switch that is a statement of a function's body,
// whose rows or cases are all short: it is long only because there are many.
func flat(fset *token.FileSet, node ast.Node, statement bool) bool {
	var parts []ast.Node
	switch n := node.(type) {
	case *ast.SwitchStmt:
		parts = cases(n.Body)
	case *ast.TypeSwitchStmt:
		parts = cases(n.Body)
	case *ast.SelectStmt:
		parts = cases(n.Body)
	case *ast.CompositeLit:
		parts, statement = rows(n), true
	}
	return statement && len(parts) > 0 && !slices.ContainsFunc(parts, func(part ast.Node) bool {
		return lines(fset, part.Pos(), part.End()) > maxFlatCase
	})
}

func cases(body *ast.BlockStmt) (out []ast.Node) {
	for _, clause := range body.List {
		out = append(out, clause)
	}
	return out
}

// rows returns the elements of a table, which are all literals themselves.
func rows(table *ast.CompositeLit) (out []ast.Node) {
	for _, element := range table.Elts {
		if _, ok := element.(*ast.CompositeLit); !ok {
			return nil
		}
		out = append(out, element)
	}
	return out
}

// lines returns the number of lines that pos to end spans.
func lines(fset *token.FileSet, pos, end token.Pos) int {
	return fset.Position(end).Line - fset.Position(pos).Line + 1
}

package tidy

import (
	"go/ast"
	"io/fs"
	"path"
	"slices"
)

const (
	// wirefmtImport is the package by which formats are described.
	wirefmtImport = "internal/wirefmt"
	// wiretestImport is the package with which they are tested.
	wiretestImport = wirefmtImport + "/wiretest"
)

// formatKind is a way to declare how something looks as bytes.
type formatKind struct {
	function string   // of wirefmt
	what     string   // that it declares
	tests    []string // the functions of wiretest that a test of the package calls
	golden   string   // has the bytes of samples
}

func formatKinds() []formatKind {
	return []formatKind{
		{"NewFormat", "format", []string{"Codec", "Fuzz"}, "testdata/wire.golden"},
		{"NewLayout", "layout", []string{"Layouts"}, "testdata/layouts.golden"},
	}
}

// checkFormats reports formats of messages, and layouts of values that stand alone, that their
// packages do not test: each has the bytes of samples in a golden file, so that a change of the
// format is a change of a file. And it reports bytes that are written by one function and read by
// another, where one declaration would do both.
func checkFormats(tree *tree, report *report) {
	tested := testsOfFormats(tree)
	for _, f := range tree.code() {
		if f.dir == wirefmtImport || f.dir == wiretestImport {
			continue
		}
		wirefmt := f.importName(tree.module + "/" + wirefmtImport)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			for _, d := range formatKinds() {
				if s.Sel.Name == d.function {
					checkDeclared(tree, report, f, n, d, tested[f.dir])
				}
			}
			if wirefmt != "" && (selects(n, wirefmt, "Writer") || selects(n, wirefmt, "NewReader")) {
				report.at(f, n.Pos(), "bytes are written or read by hand: declare a layout, which does both")
			}
			return true
		})
	}
}

// testsOfFormats returns the functions of wiretest that the tests of each directory call.
func testsOfFormats(tree *tree) map[string][]string {
	tested := map[string][]string{}
	for _, f := range tree.files {
		name := f.importName(tree.module + "/" + wiretestImport)
		if !f.test || name == "" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && selects(n, name, s.Sel.Name) {
				tested[f.dir] = append(tested[f.dir], s.Sel.Name)
			}
			return true
		})
	}
	return tested
}

func checkDeclared(tree *tree, report *report, f *file, n ast.Node, d formatKind, tested []string) {
	for _, function := range d.tests {
		if !slices.Contains(tested, function) {
			report.at(f, n.Pos(), "no test of the package calls wiretest.%s for its %s", function, d.what)
		}
	}
	if _, err := fs.Stat(tree.fsys, path.Join(f.dir, d.golden)); err != nil {
		report.at(f, n.Pos(), "there is no %s with the bytes of what the %s describes", d.golden, d.what)
	}
}

package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// checkPublic reports packages that users import and that have no doc.go with a
// package comment, or no Example function.
func checkPublic(tree *tree, report *report) {
	dirs, files := byDir(tree.files)
	for _, dir := range dirs {
		code := slices.IndexFunc(files[dir], func(f *file) bool { return !f.test })
		if code < 0 || !public(dir) || files[dir][code].ast.Name.Name == "main" {
			continue
		}
		if !slices.ContainsFunc(files[dir], documents) {
			report.add(dir, 0, "the public package has no doc.go with a package comment")
		}
		if !slices.ContainsFunc(files[dir], hasExample) {
			report.add(dir, 0, "the public package has no Example function")
		}
	}
}

func public(dir string) bool {
	elements := strings.Split(dir, "/")
	switch elements[0] {
	case "api", "cmd", "examples", "tools":
		return false
	}
	return !slices.Contains(elements, "internal")
}

func documents(f *file) bool {
	return path.Base(f.path) == "doc.go" && f.ast.Doc != nil
}

func hasExample(f *file) bool {
	return f.test && slices.ContainsFunc(f.ast.Decls, func(decl ast.Decl) bool {
		fn, ok := decl.(*ast.FuncDecl)
		return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example")
	})
}

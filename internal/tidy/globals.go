package tidy

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkGlobals reports package-level variables, less those that nobody changes:
// errors, compiled regular expressions, layouts, embedded files, and _ = assertions.
func checkGlobals(tree *tree, report *report) {
	for _, f := range tree.code() {
		for _, decl := range f.ast.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR || embeds(group.Doc) {
				continue
			}
			for _, spec := range group.Specs {
				checkVar(tree.module, f, spec.(*ast.ValueSpec), report)
			}
		}
	}
}

func checkVar(module string, f *file, spec *ast.ValueSpec, report *report) {
	if embeds(spec.Doc) {
		return
	}
	for i, name := range spec.Names {
		if name.Name == "_" || len(spec.Values) == len(spec.Names) &&
			(constant(module, f, spec.Values[i]) || sameError(name.Name, spec.Values[i])) {
			continue
		}
		report.at(f, name.Pos(), "the variable %s is package-level state: pass it as an argument", name.Name)
	}
}

// sameError reports whether a variable is an error of another package, under the same name.
func sameError(name string, value ast.Expr) bool {
	selector, ok := value.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == name && strings.HasPrefix(name, "Err")
}

// constant reports whether a variable's initial value is of a kind that nobody
// changes.
func constant(module string, f *file, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "New":
		return pkg.Name == f.importName("errors")
	case "Errorf":
		return pkg.Name == f.importName("fmt")
	case "Error":
		return pkg.Name == f.importName("google.golang.org/grpc/status")
	case "MustCompile", "MustCompilePOSIX":
		return pkg.Name == f.importName("regexp")
	case "NewLayout":
		return pkg.Name == f.importName(module+"/"+wirefmtImport)
	}
	return false
}

func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, comment := range doc.List {
		if strings.HasPrefix(comment.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

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

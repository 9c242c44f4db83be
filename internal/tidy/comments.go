package tidy

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// checkDocumented reports exported functions, types and methods of exported types whose comment
// does not begin with their name, or is missing. Types that are declared together may have one
// comment for all. Methods that every reader of Go knows need none.
func checkDocumented(tree *tree, report *report) {
	for _, f := range tree.code() {
		if f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() || d.Recv != nil && ownMethod(d) {
					checkDoc(report, f, d.Name, d.Doc)
				}
			case *ast.GenDecl:
				if len(d.Specs) > 1 && d.Doc != nil {
					continue
				}
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok || !t.Name.IsExported() {
						continue
					}
					doc := t.Doc
					if doc == nil && len(d.Specs) == 1 {
						doc = d.Doc
					}
					checkDoc(report, f, t.Name, doc)
				}
			}
		}
	}
}

// ownMethod reports whether a method is an exported one of an exported type, and does not do what
// its name always means.
func ownMethod(d *ast.FuncDecl) bool {
	known := []string{"String", "Error", "Unwrap", "Is", "Len", "Less", "Swap", "Push", "Pop", "MarshalJSON",
		"UnmarshalJSON", "MarshalText", "UnmarshalText", "Format", "LogValue", "Close", "Set", "Type"}
	if !d.Name.IsExported() || slices.Contains(known, d.Name.Name) {
		return false
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

func checkDoc(report *report, f *file, name *ast.Ident, doc *ast.CommentGroup) {
	words := strings.Fields(doc.Text())
	if len(words) > 0 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		report.at(f, name.Pos(), "%s has no comment", name.Name)
	} else if words[0] = strings.TrimRight(words[0], ",:."); words[0] != name.Name && words[0] != name.Name+"'s" {
		report.at(f, name.Pos(), "the comment of %s begins with %s", name.Name, words[0])
	}
}

// The alternatives are split so that this file does not match itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkUnfinished reports notes to self.
func checkUnfinished(tree *tree, report *report) {
	for _, f := range tree.files {
		start := tree.fset.File(f.ast.Package)
		for _, match := range unfinished.FindAllIndex(f.src, -1) {
			report.at(f, start.Pos(match[0]), "has the note %s: do it, or file an issue", f.src[match[0]:match[1]])
		}
	}
}

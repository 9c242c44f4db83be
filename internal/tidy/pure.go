package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// checkPure reports, in packages whose effects must depend on their inputs
// only, what brings in threads, clocks, chance, the outside world or the order
// of a map.
//
// Types come from the sources of this module and from the standard library. A
// map whose type only a third party's package tells is not noticed.
func checkPure(tree *tree, report *report) {
	checker := newTypeChecker(tree)
	dirs, files := byDir(tree.code())
	for _, dir := range dirs {
		if !isPure(dir) {
			continue
		}
		info := checker.infoOf(dir)
		for _, f := range files[dir] {
			checkPureImports(f, report)
			walk := &pureWalk{file: f, info: info, report: report, ordered: make(map[ast.Node]bool)}
			ast.Inspect(f.ast, walk.visit)
		}
	}
}

func isPure(dir string) bool {
	for _, pattern := range []string{"protocol/...", "quorum/...", "clock/..."} {
		if within(pattern, dir) {
			return true
		}
	}
	r, ok := roomOf(dir)
	return ok && r.layer == pure
}

func checkPureImports(f *file, report *report) {
	impure := []string{
		"context/...", "crypto/rand/...", "hash/maphash/...", "log/...", "net/...", "os/...",
		"runtime/...", "sync/...", "syscall/...", "testing/...",
	}
	for spec, importPath := range f.imports() {
		if slices.ContainsFunc(impure, func(pattern string) bool { return within(pattern, importPath) }) {
			report.at(f, spec.Pos(), "imports %s in pure code", importPath)
		}
	}
}

// pureWalk looks at the syntax of one file of a pure package.
type pureWalk struct {
	file    *file
	info    *types.Info
	report  *report
	ordered map[ast.Node]bool // calls whose result's order does not matter
}

func (w *pureWalk) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		w.found(n, "starts a goroutine")
	case *ast.ChanType:
		w.found(n, "names a channel type")
	case *ast.SendStmt:
		w.found(n, "sends to a channel")
	case *ast.SelectStmt:
		w.found(n, "selects between channels")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.found(n, "receives from a channel")
		}
	case *ast.RangeStmt:
		w.visitRange(n)
	case *ast.CallExpr:
		w.visitCall(n)
	case *ast.SelectorExpr:
		w.visitSelector(n)
	}
	return true
}

func (w *pureWalk) found(n ast.Node, what string) {
	w.report.at(w.file, n.Pos(), "%s in pure code", what)
}

func (w *pureWalk) visitRange(n *ast.RangeStmt) {
	switch t := w.info.TypeOf(n.X); {
	case t == nil:
	case ranges[*types.Map](t):
		w.found(n, "ranges over a map")
	case ranges[*types.Chan](t):
		w.found(n, "ranges over a channel")
	}
}

// visitCall reports iterators over maps, less those that are sorted or poured
// into a map at once.
func (w *pureWalk) visitCall(n *ast.CallExpr) {
	switch pkg, name := w.qualified(n.Fun); {
	case pkg == "slices" && strings.HasPrefix(name, "Sorted"), pkg == "maps" && (name == "Collect" || name == "Insert"):
		for _, argument := range n.Args {
			w.ordered[argument] = true
		}
	case pkg == "maps" && (name == "Keys" || name == "Values" || name == "All"):
		if !w.ordered[n] {
			w.found(n, "iterates over a map with maps."+name)
		}
	}
}

func (w *pureWalk) visitSelector(n *ast.SelectorExpr) {
	pkg, name := w.qualified(n)
	impure := false
	switch pkg {
	case "time":
		impure = slices.Contains([]string{
			"After", "AfterFunc", "LoadLocation", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
		}, name)
	case "math/rand", "math/rand/v2":
		impure = !slices.Contains([]string{
			"ChaCha8", "New", "NewChaCha8", "NewPCG", "NewSource", "NewZipf", "PCG", "Rand", "Source", "Source64", "Zipf",
		}, name)
	case "fmt":
		impure = strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")
	}
	if impure {
		w.found(n, "uses "+pkg+"."+name)
	}
}

// qualified returns the package's path and the name if e is an identifier that
// a package exports.
func (w *pureWalk) qualified(e ast.Expr) (pkg, name string) {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	imported, ok := w.info.Uses[ident].(*types.PkgName)
	if !ok {
		return "", ""
	}
	return imported.Imported().Path(), selector.Sel.Name
}

// ranges reports whether the underlying type of t is a T, for a type parameter
// that of any type in its constraint.
func ranges[T types.Type](t types.Type) bool {
	if _, ok := t.Underlying().(T); ok {
		return true
	}
	parameter, ok := t.(*types.TypeParam)
	if !ok {
		return false
	}
	constraint := parameter.Constraint().Underlying().(*types.Interface)
	for embedded := range constraint.EmbeddedTypes() {
		union, ok := embedded.(*types.Union)
		if !ok {
			continue
		}
		for term := range union.Terms() {
			if _, ok := term.Type().Underlying().(T); ok {
				return true
			}
		}
	}
	return false
}

package tidy

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// typeChecker finds the types in a tree's packages. It reads the tree's own
// packages from their sources and the standard library's from the build cache;
// everything else, generated code included, is unknown, and so is what depends
// on it.
type typeChecker struct {
	tree     *tree
	files    map[string][]*file // by directory
	std      types.Importer
	packages map[string]*types.Package // by import path
}

func newTypeChecker(tree *tree) *typeChecker {
	_, files := byDir(tree.code())
	return &typeChecker{tree: tree, files: files, std: importer.ForCompiler(tree.fset, "gc", export),
		packages: make(map[string]*types.Package)}
}

// export opens what the compiler says of a package of the standard library. The importer's own way
// to find it needs a program that knows where Go is, which one that was built with -trimpath does
// not.
func export(importPath string) (io.ReadCloser, error) {
	file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", importPath).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export %s: %w", importPath, err)
	}
	return os.Open(strings.TrimSpace(string(file)))
}

// infoOf returns what is known about the syntax of the package in dir.
func (c *typeChecker) infoOf(dir string) *types.Info {
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue),
		Defs:  make(map[*ast.Ident]types.Object),
		Uses:  make(map[*ast.Ident]types.Object),
	}
	c.check(dir, info)
	return info
}

func (c *typeChecker) check(dir string, info *types.Info) *types.Package {
	var syntax []*ast.File
	for _, f := range c.files[dir] {
		syntax = append(syntax, f.ast)
	}
	config := types.Config{
		Importer:    c,
		FakeImportC: true,
		Error:       func(error) {}, // unknown imports; the compiler reports the others
	}
	checked, _ := config.Check(path.Join(c.tree.module, dir), c.tree.fset, syntax, info)
	return checked
}

// Import implements types.Importer.
func (c *typeChecker) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	if known := c.packages[importPath]; known != nil {
		return known, nil
	}
	imported := c.load(importPath)
	c.packages[importPath] = imported
	return imported, nil
}

func (c *typeChecker) load(importPath string) *types.Package {
	unknown := types.NewPackage(importPath, defaultName(importPath))
	unknown.MarkComplete()
	if dir, ok := c.tree.dirOf(importPath); ok {
		if len(c.files[dir]) == 0 {
			return unknown
		}
		c.packages[importPath] = unknown // for a cycle
		return c.check(dir, nil)
	}
	first, _, _ := strings.Cut(importPath, "/")
	if strings.Contains(first, ".") {
		return unknown
	}
	imported, err := c.std.Import(importPath)
	if err != nil {
		return unknown
	}
	return imported
}

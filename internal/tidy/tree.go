package tidy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is a repository's Go code.
type tree struct {
	fsys   fs.FS
	module string // the path of the module at the root
	fset   *token.FileSet
	files  []*file // by path
}

// file is one Go file that a person wrote.
type file struct {
	path    string // slash-separated, relative to the tree's root
	dir     string // "." for the root
	test    bool
	src     []byte
	ast     *ast.File
	waivers []*waiver
}

// load reads the Go code below the root of fsys, which holds a go.mod.
func load(fsys fs.FS) (*tree, error) {
	mod, err := readModFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	t := &tree{fsys: fsys, module: mod.module, fset: token.NewFileSet()}
	if err := walk(fsys, ".go", t.loadFile); err != nil {
		return nil, fmt.Errorf("tidy: load: %w", err)
	}
	return t, nil
}

// walk calls visit with each file that has an extension and that a person wrote.
func walk(fsys fs.FS, ext string, visit func(name string) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone since its directory was listed
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ext:
			return nil
		}
		return visit(name)
	})
}

func ignored(dir string) bool {
	return dir == "testdata" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func (t *tree) loadFile(name string) error {
	src, err := fs.ReadFile(t.fsys, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	f := &file{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), src: src, ast: parsed}
	f.waivers = findWaivers(t.fset, f)
	t.files = append(t.files, f)
	return nil
}

// code returns the files that are part of a package's build.
func (t *tree) code() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.test })
}

// byDir returns files by directory, and the directories in order.
func byDir(files []*file) ([]string, map[string][]*file) {
	dirs := make(map[string][]*file)
	for _, f := range files {
		dirs[f.dir] = append(dirs[f.dir], f)
	}
	return slices.Sorted(maps.Keys(dirs)), dirs
}

// imports returns the path that each import of f names.
func (f *file) imports() map[*ast.ImportSpec]string {
	paths := make(map[*ast.ImportSpec]string)
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths[spec] = p
		}
	}
	return paths
}

// importName returns the name by which f refers to a package: "" if it does not
// import it, and the path's last element, less a major version, if the import
// has no name of its own.
func (f *file) importName(importPath string) string {
	for spec, p := range f.imports() {
		switch {
		case p != importPath:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return defaultName(p)
		}
	}
	return ""
}

func defaultName(importPath string) string {
	dir, last := path.Split(importPath)
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		return path.Base(dir)
	}
	return last
}

// modFile is what the rules need of a go.mod.
type modFile struct {
	module   string
	direct   []string // modules required, less those marked "// indirect"
	indirect []string
	tools    []string // packages
}

func readModFile(fsys fs.FS, name string) (*modFile, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("tidy: %w", err)
	}
	mod := new(modFile)
	block := ""
	for lines := bufio.NewScanner(bytes.NewReader(src)); lines.Scan(); {
		code, comment, _ := strings.Cut(lines.Text(), "//")
		words := strings.Fields(code)
		switch {
		case len(words) == 0:
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case words[0] == ")":
			block = ""
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		if len(words) > 1 {
			mod.add(words[0], words[1], strings.TrimSpace(comment) == "indirect")
		}
	}
	if mod.module == "" {
		return nil, fmt.Errorf("tidy: %s names no module", name)
	}
	return mod, nil
}

func (m *modFile) add(verb, what string, indirect bool) {
	switch {
	case verb == "module":
		m.module = what
	case verb == "tool":
		m.tools = append(m.tools, what)
	case verb == "require" && indirect:
		m.indirect = append(m.indirect, what)
	case verb == "require":
		m.direct = append(m.direct, what)
	}
}

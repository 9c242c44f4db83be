package tidy

import (
	"errors"
	"go/ast"
	"io/fs"
	"slices"
	"strings"
	"unicode"
)

// wordsPage has the table of words, under wordsHeading.
const (
	wordsPage    = "docs/architecture.md"
	wordsHeading = "## 2. Words"
)

// word is a word that has one meaning: names of a package may have it only if the package is one of
// those in which it means that.
type word struct {
	parts []string // in lower case: "call site" is two
	in    []string // directories, with all below them
}

// checkWords holds what packages declare, and the fields of their types, to the table of words.
// What has one word for its name, and is a variable or a field of the package's own, may be called
// so for short.
func checkWords(tree *tree, report *report) {
	words, err := readWords(tree.fsys)
	if err != nil {
		report.add(wordsPage, 1, "%v", err)
		return
	}
	for _, f := range tree.files {
		for _, name := range declared(f.ast) {
			parts := nameParts(name.Name)
			if len(parts) == 1 && !name.IsExported() {
				continue
			}
			for i := 0; i < len(parts); {
				w := longest(words, parts[i:])
				if w == nil {
					i++
					continue
				}
				if !slices.ContainsFunc(w.in, func(dir string) bool { return f.dir == dir || strings.HasPrefix(f.dir, dir+"/") }) {
					report.at(f, name.Pos(), "%s: %s means something else here; see %s, Words", name.Name,
						strings.Join(w.parts, " "), wordsPage)
				}
				i += len(w.parts)
			}
		}
	}
}

// readWords returns the rows of the table that name packages.
func readWords(fsys fs.FS) ([]word, error) {
	page, err := fs.ReadFile(fsys, wordsPage)
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(page), wordsHeading+"\n")
	if !found {
		return nil, errors.New("there is no section of words")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var words []word
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		var in []string
		for i, part := range strings.Split(cells[3], "`") {
			if i%2 == 1 {
				in = append(in, part)
			}
		}
		if len(in) > 0 {
			words = append(words, word{strings.Fields(strings.ToLower(cells[1])), in})
		}
	}
	if len(words) == 0 {
		return nil, errors.New("no word of the table has packages")
	}
	return words, nil
}

// longest returns the word with the most parts that parts begin with, be its last one a plural.
func longest(words []word, parts []string) *word {
	var best *word
	for i, w := range words {
		n := len(w.parts)
		if n > len(parts) || best != nil && n <= len(best.parts) {
			continue
		}
		last := parts[n-1]
		if slices.Equal(w.parts[:n-1], parts[:n-1]) && (last == w.parts[n-1] || last == w.parts[n-1]+"s") {
			best = &words[i]
		}
	}
	return best
}

// declared returns what a file declares outside of functions, and the fields and methods of its
// types.
func declared(f *ast.File) []*ast.Ident {
	names := packageLevel(f)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, members(s.Type)...)
				}
			}
		}
	}
	return names
}

// packageLevel returns the names that a file adds to its package.
func packageLevel(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				case *ast.TypeSpec:
					names = append(names, s.Name)
				}
			}
		}
	}
	return names
}

func members(t ast.Expr) (names []*ast.Ident) {
	ast.Inspect(t, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				names = append(names, field.Names...)
			}
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				names = append(names, method.Names...)
			}
		}
		return true
	})
	return names
}

// nameParts returns the words of a name in lower case: "CallSiteID" has "call", "site" and "id".
func nameParts(name string) (parts []string) {
	runes := []rune(name)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		ends := i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) ||
			i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if ends {
			if part := strings.Trim(strings.ToLower(string(runes[begin:i])), "_"); part != "" {
				parts = append(parts, part)
			}
			begin = i
		}
	}
	return parts
}

// checkNames reports packages named after nothing.
func checkNames(tree *tree, report *report) {
	dirs, files := byDir(tree.files)
	for _, dir := range dirs {
		f := files[dir][0]
		switch name := strings.TrimSuffix(f.ast.Name.Name, "_test"); name {
		case "util", "utils", "common", "types", "helper", "helpers", "base":
			report.at(f, f.ast.Package, "the package name %s is not a noun that says what belongs in it", name)
		}
	}
}

package plant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Variable is the environment variable that names the bugs of a run, a line each; None names no
// bug.
const (
	Variable = "FORESAY_PLANT"
	None     = "none"
)

// Root returns the directory of the module that the test is in.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("the test is in no module")
		}
		dir = above
	}
}

// An Overlay collects files that the compiler takes in place of others. It is for one goroutine.
type Overlay struct {
	t       testing.TB
	root    string
	dir     string
	files   map[string][]byte
	planted map[string]bool // packages that ask which bug is planted
}

// NewOverlay returns one that changes nothing yet.
func NewOverlay(t testing.TB) *Overlay {
	t.Helper()
	return &Overlay{t: t, root: Root(t), dir: t.TempDir(), files: map[string][]byte{}, planted: map[string]bool{}}
}

// PlantBug makes all replacements of a bug.
func (o *Overlay) PlantBug(b Bug) {
	o.t.Helper()
	for _, e := range b.Edits() {
		o.Plant(b.Name, b.Dir, e.Old, e.New)
	}
}

// Plant replaces the one place of a package, a directory seen from the module's root, where old
// stands. MUTANT in the new text is whether Variable names the bug.
func (o *Overlay) Plant(name, dir, old, with string) {
	o.t.Helper()
	file := o.Replace(dir, old, strings.ReplaceAll(with, "MUTANT", fmt.Sprintf("planted(%q)", name)))
	if o.planted[dir] {
		return
	}
	o.planted[dir] = true
	f, err := parser.ParseFile(token.NewFileSet(), file, o.files[file], parser.PackageClauseOnly)
	if err != nil {
		o.t.Fatal(err)
	}
	o.Add(filepath.Join(dir, "planted.go"), "package "+f.Name.Name+
		"\n\nimport (\n\t\"os\"\n\t\"slices\"\n\t\"strings\"\n)\n\n"+
		"var plantedBugs = strings.Split(os.Getenv(\""+Variable+
		"\"), \"\\n\")\n\nfunc planted(name string) bool { return slices.Contains(plantedBugs, name) }\n")
}

// Replace replaces the one place of a package where old stands, and returns the file.
func (o *Overlay) Replace(dir, old, with string) (file string) {
	o.t.Helper()
	names, err := filepath.Glob(filepath.Join(o.root, dir, "*.go"))
	if err != nil {
		o.t.Fatal(err)
	}
	var in []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := filepath.Join(dir, filepath.Base(name))
		if o.files[file] == nil {
			if o.files[file], err = os.ReadFile(name); err != nil {
				o.t.Fatal(err)
			}
		}
		for range bytes.Count(o.files[file], []byte(old)) {
			in = append(in, file)
		}
	}
	if len(in) != 1 {
		o.t.Fatalf("%q is found in %q, want one place: let the planted bug follow the code", old, in)
	}
	o.files[in[0]] = bytes.Replace(o.files[in[0]], []byte(old), []byte(with), 1)
	return in[0]
}

// Add adds a file, named from the module's root.
func (o *Overlay) Add(file, src string) { o.files[file] = []byte(src) }

// Compile compiles the tests of a package with all changes, and returns the binary.
func (o *Overlay) Compile(dir string) string {
	o.t.Helper()
	binary := filepath.Join(o.dir, filepath.Base(filepath.Join(o.root, dir))+".test")
	cmd := exec.CommandContext(o.t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", o.write(),
		"-o", binary, "./"+dir)
	cmd.Dir = o.root
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return binary
}

// write writes the files and returns the name of the list of them.
func (o *Overlay) write() string {
	o.t.Helper()
	list := struct{ Replace map[string]string }{map[string]string{}}
	for file, src := range o.files {
		to := filepath.Join(o.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, src, 0o600); err != nil {
			o.t.Fatal(err)
		}
		list.Replace[filepath.Join(o.root, file)] = to
	}
	b, err := json.Marshal(list)
	if err != nil {
		o.t.Fatal(err)
	}
	name := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return name
}

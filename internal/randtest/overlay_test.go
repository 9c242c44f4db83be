package randtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root of the repository, as seen from this package's tests.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// treeMutations returns the names of the mutations that the tree has of its own.
func treeMutations(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(root(t), "internal/spectree/mutation.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	if len(names) < 3 || names[0] != "sound" || names[len(names)-1] != "mutations" {
		t.Fatalf("internal/spectree/mutation.go declares %q; want sound, the mutations, mutations", names)
	}
	return names[1 : len(names)-1]
}

// compilePlants compiles this package's tests with all bugs planted, each of
// which waits for the environment to name it.
func compilePlants(t *testing.T, treeNames []string) string {
	t.Helper()
	o := newOverlay(t, plants())
	o.replace("internal/spectree", "\tt.cfg = cfg\n", "\tt.cfg = cfg\nt.cfg.mutation = plantedMutation()\n")
	var cases strings.Builder
	for _, n := range treeNames {
		fmt.Fprintf(&cases, "case %q:\nreturn %s\n", "tree "+n, n)
	}
	o.add("internal/spectree/planted.go", "package spectree\nimport \"os\"\nfunc plantedMutation() mutation {\nswitch os.Getenv(\""+plantVariable+"\") {\n"+cases.String()+"}\nreturn sound\n}\n")
	return o.compile("internal/randtest")
}

// overlay collects files that the compiler takes in place of others.
type overlay struct {
	t       *testing.T
	dir     string
	files   map[string][]byte
	Replace map[string]string
}

// newOverlay plants bugs.
func newOverlay(t *testing.T, plants []plant) *overlay {
	t.Helper()
	o := &overlay{t: t, dir: t.TempDir(), files: make(map[string][]byte), Replace: make(map[string]string)}
	for _, p := range plants {
		o.replace(p.dir, p.old, strings.ReplaceAll(p.new, "MUTANT", fmt.Sprintf("planted(%q)", p.name)))
	}
	for dir, name := range map[string]string{".": "foresay", "specgrpc": "specgrpc"} {
		o.add(dir+"/planted.go", "package "+name+"\nimport \"os\"\nfunc planted(name string) bool { return os.Getenv(\""+plantVariable+"\") == name }\n")
	}
	return o
}

// compile compiles the tests of a package.
func (o *overlay) compile(dir string) (binary string) {
	o.t.Helper()
	binary = filepath.Join(o.dir, filepath.Base(filepath.Join(root(o.t), dir))+".test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", o.write(), "-o", binary, "./"+dir)
	cmd.Dir = root(o.t)
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return binary
}

// replace replaces a text that one file of the package contains once.
func (o *overlay) replace(dir, old, with string) {
	o.t.Helper()
	names, err := filepath.Glob(filepath.Join(root(o.t), dir, "*.go"))
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
}

func (o *overlay) add(file, src string) { o.files[file] = []byte(src) }

// write writes the files and returns the name of the list of them.
func (o *overlay) write() string {
	o.t.Helper()
	for file, src := range o.files {
		to := filepath.Join(o.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, src, 0o600); err != nil {
			o.t.Fatal(err)
		}
		o.Replace[filepath.Join(root(o.t), file)] = to
	}
	b, err := json.Marshal(o)
	if err != nil {
		o.t.Fatal(err)
	}
	list := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return list
}

package randtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strings"
	"testing"

	planting "github.com/foresay/foresay/internal/plant"
)

// treeMutations returns the names of the mutations that the tree has of its own.
func treeMutations(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(planting.Root(t), "internal/spectree/mutation.go"), nil, 0)
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
	o := planting.NewOverlay(t)
	for _, p := range plants() {
		o.Plant(p.name, p.dir, p.old, p.new)
	}
	o.Replace("internal/spectree", "\tt.cfg = cfg\n", "\tt.cfg = cfg\nt.cfg.mutation = plantedMutation()\n")
	var cases strings.Builder
	for _, n := range treeNames {
		fmt.Fprintf(&cases, "case %q:\nreturn %s\n", "tree "+n, n)
	}
	o.Add("internal/spectree/plantedmutation.go", "package spectree\nimport \"os\"\nfunc plantedMutation() mutation {\nswitch os.Getenv(\""+planting.Variable+"\") {\n"+cases.String()+"}\nreturn sound\n}\n")
	return o.Compile("internal/randtest")
}

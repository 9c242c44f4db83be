package driver

import (
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocNamesMethods: the package comment has a line for each exported method of the engine's
// types, which go doc does not show, and for none that does not exist.
func TestDocNamesMethods(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(file.Doc.Text(), "# What attempts, handlers and observed calls do\n")
	if !ok {
		t.Fatal("the package comment has no section on methods")
	}
	var want []string
	for _, of := range []reflect.Type{
		reflect.TypeFor[*Operation](), reflect.TypeFor[*Attempt](), reflect.TypeFor[*Handler](), reflect.TypeFor[*Watched](),
	} {
		for method := range of.Methods() {
			want = append(want, method.Name)
		}
	}
	var got []string
	for _, m := range regexp.MustCompile(`\b([A-Z]\w+)\(`).FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("methods named:\n%v\nthe types':\n%v", got, want)
	}
}

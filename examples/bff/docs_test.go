package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// canaryFile is the site file of the rung canary.
const canaryFile = `
{"sites": [
  {"method": "/foresay.bff.v1.Users/GetUser", "mode": "canary", "share": 0.2, "predictors": [{"kind": "last"}]},
  {"method": "/foresay.bff.v1.Permissions/Check", "mode": "canary", "share": 0.2, "predictors": [{"kind": "last"}]}
]}
`

// TestPageShowsThisProgram: each line of the diffs in docs/adopting.md is one of
// this program, and so are its site files.
func TestPageShowsThisProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/adopting.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]bool)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			lines[line] = true
		}
	}
	var sites strings.Builder
	diffs, kind := 0, ""
	for line := range strings.Lines(string(page)) {
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			kind = strings.TrimSpace(fence)
			continue
		}
		switch kind {
		case "diff":
			diffs++
			if line[0] != '+' && line[0] != '-' || !lines[line[1:]] {
				t.Errorf("the program has no line %q", line)
			}
		case "json":
			sites.WriteString(line)
		}
	}
	if diffs == 0 {
		t.Error("the page has no diffs")
	}
	if got := "\n" + rungs()[4].callSiteFile(); got != canaryFile {
		t.Errorf("the site file of canary is %s", got)
	}
	if want := strings.TrimPrefix(wrong, "\n") + strings.TrimPrefix(canaryFile, "\n"); sites.String() != want {
		t.Errorf("the page's site files are\n%swant\n%s", sites.String(), want)
	}
}

// TestAdoptionIsOneCall: the diffs of the page's first step are the whole difference between the
// program without Foresay and the observed one, and that is one new statement, with its error
// check, and two lines in which a name changes.
func TestAdoptionIsOneCall(t *testing.T) {
	page, err := os.ReadFile("../../docs/adopting.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("front.go")
	if err != nil {
		t.Fatal(err)
	}
	_, step, _ := strings.Cut(string(page), "\n## 1. Observe\n")
	step, _, _ = strings.Cut(step, "\n## ")
	var added, removed []string
	diff := false
	for line := range strings.Lines(step) {
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			diff = fence == "diff\n"
			continue
		}
		if code := strings.TrimSpace(line[1:]); diff && line[0] == '+' {
			added = append(added, code)
		} else if diff {
			removed = append(removed, code)
		}
	}
	plain, observed := body(t, string(source), "startPlain"), body(t, string(source), "startObserved")
	got := slices.DeleteFunc(observed, func(l string) bool { return drop(&plain, l) })
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(added))) {
		t.Errorf("the program gains\n%s\nthe page adds\n%s", strings.Join(got, "\n"), strings.Join(added, "\n"))
	}
	if !slices.Equal(plain, removed) {
		t.Errorf("the program loses\n%s\nthe page removes\n%s", strings.Join(plain, "\n"), strings.Join(removed, "\n"))
	}
	const most = 1 // besides the lines that change
	if n := statements(t, added) - statements(t, removed); n > most {
		t.Errorf("observing takes %d new statements and their error checks; want %d", n, most)
	}
	if changed := len(removed); changed > 2 {
		t.Errorf("observing changes %d lines; want 2", changed)
	}
}

// body returns the lines of a function's body.
func body(t *testing.T, source, name string) (lines []string) {
	t.Helper()
	_, rest, ok := strings.Cut(source, "\nfunc "+name+"(")
	if !ok {
		t.Fatalf("there is no function %s", name)
	}
	rest, _, _ = strings.Cut(rest, "\n}\n")
	for _, line := range strings.Split(rest, "\n")[1:] {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// drop removes the first line that is equal, if there is one.
func drop(lines *[]string, line string) bool {
	i := slices.Index(*lines, line)
	if i >= 0 {
		*lines = slices.Delete(*lines, i, i+1)
	}
	return i >= 0
}

// statements counts a function's statements. The check of an error is part of the statement that it
// checks.
func statements(t *testing.T, lines []string) int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+strings.Join(lines, "\n")+"\n}\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.IfStmt:
			if checks, ok := s.Cond.(*ast.BinaryExpr); ok && checks.Op == token.NEQ && len(s.Body.List) == 1 {
				if s.Init != nil {
					n++
				}
				return false
			}
			n++
		case *ast.BlockStmt:
		case ast.Stmt:
			n++
		}
		return true
	})
	return n
}

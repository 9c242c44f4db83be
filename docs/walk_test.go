package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walkFile is how the walk names a file: of the engine, or of another package by its path.
var walkFile = regexp.MustCompile(`[\[ ]([a-z/]+\.go)\b`)

// walkStep is a function that the walk names, perhaps with its type.
var walkStep = regexp.MustCompile("`(?:([A-Za-z]+)\\.)?([A-Za-z]+)`")

// walk returns the section of the walk, a step at a time.
func walk(t *testing.T) []string {
	t.Helper()
	_, section, ok := strings.Cut(pages(t)["docs/architecture.md"], "### From Do to answer\n")
	section, _, end := strings.Cut(section, "\n### ")
	if !ok || !end {
		t.Fatal("docs/architecture.md has no section From Do to answer")
	}
	return regexp.MustCompile(`(?m)^\d+\. `).Split(section, -1)[1:]
}

func walkSource(t *testing.T, file string) string {
	t.Helper()
	if !strings.Contains(file, "/") {
		file = "internal/engine/" + file
	}
	src, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// declarations returns where a source declares functions of that name: of a type, or of any if
// there is none.
func declarations(src, of, function string) (at []int) {
	receiver := `\([^)]*\) `
	if of != "" {
		receiver = `\(\w+ \*?` + of + `(?:\[[^)]*)?\) `
	}
	for _, m := range regexp.MustCompile(`(?m)^func (?:`+receiver+`)?`+function+`[\[(]`).FindAllStringIndex(src, -1) {
		if of == "" || !strings.HasPrefix(src[m[0]:], "func "+function) {
			at = append(at, m[0])
		}
	}
	return at
}

// TestWalk: the functions that the walk from Do to an answer names with a file are in that file.
func TestWalk(t *testing.T) {
	named := regexp.MustCompile("`(?:([A-Za-z]+)\\.)?([A-Za-z]+)`(?:es)?(?:,| \\[)\\s*([a-z/]+\\.go)")
	n := 0
	for _, step := range walk(t) {
		for _, m := range named.FindAllStringSubmatch(step, -1) {
			n++
			if len(declarations(walkSource(t, m[3]), m[1], m[2])) == 0 {
				t.Errorf("%s is not in %s", strings.TrimPrefix(m[1]+"."+m[2], "."), m[3])
			}
		}
	}
	if n < 18 {
		t.Errorf("%d functions with their files, want 18 or more", n)
	}
}

// TestWalkGoesDown: the functions of one file that a step of the walk names stand there in the
// order in which they are named, so that who follows the walk reads downwards.
func TestWalkGoesDown(t *testing.T) {
	n := 0
	for i, step := range walk(t) {
		var files []string
		for _, m := range walkFile.FindAllStringSubmatch(step, -1) {
			files = append(files, m[1])
		}
		slices.Sort(files)
		for _, file := range slices.Compact(files) {
			src, last, lastName := walkSource(t, file), 0, ""
			seen := map[string]bool{}
			for _, m := range walkStep.FindAllStringSubmatch(step, -1) {
				name := strings.TrimPrefix(m[1]+"."+m[2], ".")
				at := declarations(src, m[1], m[2])
				if len(at) != 1 || seen[name] {
					continue
				}
				n++
				if seen[name] = true; at[0] < last {
					t.Errorf("step %d names %s before %s, which stands above it in %s", i+1, lastName, name, file)
				}
				last, lastName = at[0], name
			}
		}
	}
	if n < 30 {
		t.Errorf("%d functions, want 30 or more", n)
	}
}

// TestWalkHasOneNameForAFunction: a name that the walk gives with a type stands in it with one
// everywhere, so that no reader takes the functions of two types for one.
func TestWalkHasOneNameForAFunction(t *testing.T) {
	typed, bare := map[string]bool{}, map[string]bool{}
	for _, step := range walk(t) {
		for _, m := range walkStep.FindAllStringSubmatch(step, -1) {
			if m[1] == "" {
				bare[strings.ToLower(m[2])] = true
			} else {
				typed[strings.ToLower(m[2])] = true
			}
		}
	}
	for name := range typed {
		// Do itself is the function of package foresay.
		if bare[name] && name != "do" {
			t.Errorf("%s stands in the walk with a type and without one", name)
		}
	}
}

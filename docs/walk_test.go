package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWalk: the functions that the walk from Do to an answer names are in the files that it names.
func TestWalk(t *testing.T) {
	page := pages(t)["docs/architecture.md"]
	_, walk, ok := strings.Cut(page, "### From Do to answer\n")
	walk, _, end := strings.Cut(walk, "\n### ")
	if !ok || !end {
		t.Fatal("docs/architecture.md has no section From Do to answer")
	}
	steps := regexp.MustCompile("`([A-Za-z.]+)`(?:es)?(?:,| \\[)\\s*([a-z/]+\\.go)").FindAllStringSubmatch(walk, -1)
	if len(steps) < 15 {
		t.Errorf("%d functions with their files, want 15 or more", len(steps))
	}
	for _, s := range steps {
		function, file := s[1][strings.LastIndexByte(s[1], '.')+1:], s[2]
		if !strings.Contains(file, "/") {
			file = "internal/engine/" + file
		}
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `[\[(]`).Match(src) {
			t.Errorf("%s is not in %s", s[1], file)
		}
	}
}

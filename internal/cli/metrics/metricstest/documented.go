package metricstest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Documented fails if a page has a metric of the prefix that the tables of a file of the docs do
// not name, or if these name one that none of the pages has, unless its name is among those that
// may be absent. Tables name metrics in code spans: a whole name first, then those of the same
// prefix as "_" and the rest.
func Documented(t testing.TB, pages []string, prefix, file string, mayBeAbsent ...string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(name, "`"+prefix) {
			continue
		}
		for _, m := range regexp.MustCompile("`("+prefix+"|_)(\\w+)`").FindAllStringSubmatch(name, -1) {
			documented[prefix+m[2]] = true
		}
	}
	served := make(map[string]bool)
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (`+prefix+`\S+) `).FindAllStringSubmatch(page, -1) {
			served[m[1]] = true
		}
	}
	for name := range served {
		if !documented[name] {
			t.Errorf("%s does not name %s", file, name)
		}
	}
	for name := range documented {
		if !served[name] && !slices.Contains(mayBeAbsent, name) {
			t.Errorf("%s names %s, which no page has", file, name)
		}
	}
}

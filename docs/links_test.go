package docs_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInURL = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks: what pages and designs link to in the repository is there, and has the heading.
func TestLinks(t *testing.T) {
	all := pages(t)
	maps.Copy(all, designs(t))
	checked := 0
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			file, heading, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			} else if target, ok := all[to]; ok && heading != "" && !slices.Contains(anchors(target), heading) {
				t.Errorf("%s: %s: %s has no such heading", page, m[1], to)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links were found", checked)
	}
}

// prose returns what stands outside of a page's blocks.
func prose(page string) string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// anchors returns the names that a page's headings have in links.
func anchors(page string) (out []string) {
	for line := range strings.SplitSeq(prose(page), "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			out = append(out, strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(title), ""), " ", "-"))
		}
	}
	return out
}

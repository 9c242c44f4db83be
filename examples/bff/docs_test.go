package main

import (
	"os"
	"path/filepath"
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
	if got := "\n" + rungs()[4].siteFile(); got != canaryFile {
		t.Errorf("the site file of canary is %s", got)
	}
	if want := strings.TrimPrefix(wrong, "\n") + strings.TrimPrefix(canaryFile, "\n"); sites.String() != want {
		t.Errorf("the page's site files are\n%swant\n%s", sites.String(), want)
	}
}

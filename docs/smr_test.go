package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli"
)

// The network that smr.md shows.
const ownNetwork = `
{
  "sites": ["oregon", "virginia", "frankfurt", "singapore"],
  "rtt_ms": [[0, 60, 140, 165], [60, 0, 90, 220], [140, 90, 0, 160], [165, 220, 160, 0]]
}
`

// TestPlansOfPages: what pages show of 'foresay smr plan' and 'store plan' is what these print.
func TestPlansOfPages(t *testing.T) {
	for page, plans := range map[string]int{"smr.md": 3, "store.md": 2} {
		t.Run(page, func(t *testing.T) { showsPlans(t, page, plans) })
	}
}

func showsPlans(t *testing.T, page string, plans int) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "net.json"), []byte(ownNetwork), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text\n\\$ foresay ((?:smr|store) plan[^\n]*)\n(.*?)```").FindAllSubmatch(b, -1)
	if len(shown) < plans {
		t.Errorf("%s shows %d plans, want %d at least", page, len(shown), plans)
	}
	for _, m := range shown {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), strings.Fields(string(m[1])), cli.Streams{In: strings.NewReader(""), Out: &out,
			Err: &errs})
		if code != 0 || out.String() != string(m[2]) {
			t.Errorf("%s: code %d, %s%s\nthe page has\n%s", m[1], code, errs.String(), out.String(), m[2])
		}
	}
}

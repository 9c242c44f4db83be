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

// TestSMRPage: what smr.md shows of 'foresay smr plan' is what it prints.
func TestSMRPage(t *testing.T) {
	b, err := os.ReadFile("smr.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "net.json"), []byte(ownNetwork), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text\n\\$ foresay (smr plan[^\n]*)\n(.*?)```").FindAllSubmatch(b, -1)
	if len(shown) < 3 {
		t.Errorf("smr.md shows %d plans", len(shown))
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

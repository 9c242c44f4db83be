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

// TestSMRPage: what smr.md shows of 'foresay smr plan' is what it prints, for the network file that the page shows too.
func TestSMRPage(t *testing.T) {
	b, err := os.ReadFile("smr.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(b)
	if file == nil {
		t.Fatal("smr.md shows no file of a network")
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "net.json"), file[1], 0o600); err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text\n\\$ foresay (smr plan[^\n]*)\n(.*?)```").FindAllSubmatch(b, -1)
	if len(shown) < 3 {
		t.Errorf("smr.md shows %d plans", len(shown))
	}
	for _, m := range shown {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), strings.Fields(string(m[1])), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != 0 || out.String() != string(m[2]) {
			t.Errorf("%s: code %d, %s%s\nthe page has\n%s", m[1], code, errs.String(), out.String(), m[2])
		}
	}
}

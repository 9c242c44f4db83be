package speccmd_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli"
	"github.com/foresay/foresay/internal/cli/command"
)

const shopTraces = "../../traceanalysis/testdata/shop.json.gz"

// analyze runs the command, which must succeed.
func analyze(t *testing.T, in string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(t.Context(), append([]string{"analyze"}, args...), command.Streams{In: strings.NewReader(in),
		Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	return out.String(), errs.String()
}

// TestAnalyzePage: the tables and the picture on the page are what the command makes of the
// committed traces.
func TestAnalyzePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/analyze.md")
	if err != nil {
		t.Fatal(err)
	}
	svg := filepath.Join(t.TempDir(), "shop.svg")
	out, _ := analyze(t, "", shopTraces, "--top", "1", "--svg", svg)
	if !strings.Contains(string(page), "\n```text\n"+out+"```\n") {
		t.Errorf("the page does not show what is printed:\n%s", out)
	}
	got, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("FORESAY_WRITE_TESTDATA") != "" {
		if err := os.WriteFile("../../../docs/analyze.svg", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("../../../docs/analyze.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/analyze.svg is another picture; FORESAY_WRITE_TESTDATA=1 writes it")
	}
}

// TestAnalyzeFilesSideBySide: a file for each service, and room for few spans, make no difference,
// for files are read side by side.
func TestAnalyzeFilesSideBySide(t *testing.T) {
	f, err := os.Open(shopTraces)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	byService := make(map[string]*bytes.Buffer)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, after, _ := strings.Cut(lines.Text(), `"service.name","value":{"stringValue":"`)
		service, _, _ := strings.Cut(after, `"`)
		if byService[service] == nil {
			byService[service] = new(bytes.Buffer)
		}
		byService[service].Write(append(lines.Bytes(), '\n'))
	}
	if lines.Err() != nil || len(byService) != 7 {
		t.Fatalf("%d services: %v", len(byService), lines.Err())
	}
	dir := t.TempDir()
	var files []string
	for service, text := range byService {
		name := filepath.Join(dir, service+".json")
		if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	want, _ := analyze(t, "", shopTraces)
	got, _ := analyze(t, "", append(files, "--max-spans", "700")...)
	if got != want {
		t.Errorf("from files side by side:\n%s\nfrom one:\n%s", got, want)
	}
	stdin := byService["bff"].String()
	delete(byService, "bff")
	got, _ = analyze(t, stdin, append(without(files, "bff.json"), "-")...)
	if got != want {
		t.Errorf("with one from standard input:\n%s\nfrom one:\n%s", got, want)
	}
}

func without(files []string, name string) []string {
	var out []string
	for _, file := range files {
		if filepath.Base(file) != name {
			out = append(out, file)
		}
	}
	return out
}

func TestAnalyzeArguments(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{shopTraces, "--pure", ""}, 2, "analyze: --pure is empty; want a pattern"},
		{[]string{shopTraces, "--effects", "a", "--effects", ""}, 2, "analyze: --effects is empty; want a pattern"},
		{[]string{dir}, 1, "analyze: " + dir + " is a directory\n"},
		{[]string{shopTraces, dir}, 1, "analyze: " + dir + " is a directory\n"},
	} {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), append([]string{"analyze"}, c.args...), command.Streams{In: strings.NewReader(""),
			Out: &out, Err: &errs})
		if code != c.code || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
			t.Errorf("%q: exit code %d, %s; want %d, %s", c.args, code, &errs, c.code, c.says)
		}
	}
	for rate, hint := range map[string]string{"0.9": "for 90 % say --hit-rate 90\n", "2": ""} {
		if _, errs := analyze(t, "", shopTraces, "--hit-rate", rate); !strings.HasSuffix(errs, hint) ||
			(errs == "") != (hint == "") {
			t.Errorf("--hit-rate %s: %q", rate, errs)
		}
	}
}

// Package docs_test checks what the pages of this directory say against the
// code: that the code they show is code that compiles, that the bytes are
// frames, that the tests and files that they name exist.
package docs_test

import (
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// root is the repository's.
const root = ".."

// pages returns the pages by their path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	return read(t, "README.md", "docs/*.md")
}

// designs returns the packages' DESIGN.md files, in the same way.
func designs(t *testing.T) map[string]string {
	t.Helper()
	return read(t, "*/DESIGN.md", "*/*/DESIGN.md", "*/*/*/DESIGN.md")
}

func read(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.ToSlash(rel)] = string(b)
		}
	}
	return out
}

// block is a fenced block of a page.
type block struct {
	info  string
	line  int
	lines []string
}

func blocks(page string) []block {
	var out []block
	var at *block
	for i, line := range strings.Split(page, "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && at == nil:
			at = &block{info: fence, line: i + 1}
		case ok:
			out = append(out, *at)
			at = nil
		case at != nil:
			at.lines = append(at.lines, line)
		}
	}
	return out
}

// TestSnippets: the Go code on the pages stands, line for line, in a program of
// examples/, in a test beside the pages, or in the example of a package that
// they are about.
func TestSnippets(t *testing.T) {
	var sources []string
	for _, dir := range []string{"examples", "docs", "smr/service/example_test.go", "bft/client/example_test.go"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" {
				return err
			}
			b, err := os.ReadFile(name)
			sources = append(sources, trimmed(strings.Split(string(b), "\n")))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, page := range pages(t) {
		for _, b := range blocks(page) {
			if b.info != "go" && b.info != "json" {
				continue
			}
			code, found := trimmed(b.lines), false
			for _, s := range sources {
				found = found || strings.Contains(s, code)
			}
			if !found {
				t.Errorf("%s:%d: the code is nowhere in examples/, docs/ and the packages' examples", name, b.line)
			}
		}
	}
}

// trimmed joins lines without their indentation.
func trimmed(lines []string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, line := range lines {
		b.WriteString(strings.Trim(strings.TrimSpace(line), "`") + "\n")
	}
	return b.String()
}

// TestBytes: the bytes on the pages are whole gRPC messages that hold frames.
func TestBytes(t *testing.T) {
	n := 0
	for name, page := range pages(t) {
		for _, b := range blocks(page) {
			kind, ok := strings.CutPrefix(b.info, "hex ")
			if !ok {
				continue
			}
			n++
			message := leadingHex(t, b.lines)
			if len(message) < 5 || message[0] != 0 || int(binary.BigEndian.Uint32(message[1:])) != len(message)-5 {
				t.Errorf("%s:%d: not a gRPC message: % x", name, b.line, message)
				continue
			}
			var frame proto.Message = new(specv1.ClientFrame)
			if kind == "ServerFrame" {
				frame = new(specv1.ServerFrame)
			}
			if err := proto.Unmarshal(message[5:], frame); err != nil || hasUnknown(frame.ProtoReflect()) {
				t.Errorf("%s:%d: not a %s: %v, error %v", name, b.line, kind, protojson.Format(frame), err)
			}
		}
	}
	if n == 0 {
		t.Error("no bytes on any page")
	}
}

// leadingHex returns the pairs of digits that lines begin with.
func leadingHex(t *testing.T, lines []string) []byte {
	t.Helper()
	pair := regexp.MustCompile(`^[0-9a-f]{2}$`)
	var out []byte
	for _, line := range lines {
		for _, word := range strings.Fields(line) {
			if !pair.MatchString(word) {
				break
			}
			b, err := hex.DecodeString(word)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b...)
		}
	}
	return out
}

func hasUnknown(m protoreflect.Message) bool {
	unknown := len(m.GetUnknown()) > 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() != nil && !f.IsList() && !f.IsMap() {
			unknown = unknown || hasUnknown(v.Message())
		}
		return true
	})
	return unknown
}

// TestNames: the tests, the files and the directories that the pages and the DESIGN.md files name
// exist.
func TestNames(t *testing.T) {
	tests := testSources(t)
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	all := pages(t)
	maps.Copy(all, designs(t))
	for name, page := range all {
		for _, m := range namedTest.FindAllStringSubmatch(page, -1) {
			sources, ok := tests[m[1]]
			if !ok {
				t.Errorf("%s names the test %s, which does not exist", name, m[1])
			}
			for sub := range strings.SplitSeq(m[2], "/") {
				if quoted := `"` + strings.ReplaceAll(sub, "_", " "); sub != "" && !strings.Contains(sources, quoted) &&
					!isScenario(t, sub) {
					t.Errorf("%s names the test %s%s, but its source has no %q", name, m[1], m[2], sub)
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

// isScenario reports whether a subtest is a scenario in text, whose file it is named after, or
// scenarios of one mode, after whose directory it is.
func isScenario(t *testing.T, name string) bool {
	t.Helper()
	for _, path := range []string{name + ".txt", filepath.Join("*", name+".txt"), filepath.Join(name, "*.txt")} {
		files, err := filepath.Glob(filepath.Join(root, "*", "*", "testdata", "scenarios", path))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			return true
		}
	}
	return false
}

// namedTest is how pages name a test, and a subtest of it.
var namedTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)((?:/[^`/]+)*)`")

// testSources returns the names of all tests, each with the files in which it is.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	tests := make(map[string]string)
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if scenario, ok := strings.CutSuffix(filepath.Base(name), ".txt"); ok &&
			filepath.Base(filepath.Dir(name)) == "scenarios" {
			tests["TestScenarios"] += strconv.Quote(scenario) // a subtest for each
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(name)
		for _, m := range function.FindAllStringSubmatch(string(b), -1) {
			tests[m[1]] += string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// TestEachOptionIsTested: each row of the tables of docs/grpc.md names the test that proves it.
func TestEachOptionIsTested(t *testing.T) {
	rows := 0
	for i, line := range strings.Split(pages(t)["docs/grpc.md"], "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if line == "## What belongs to the connection" { // where calls do not differ
			break
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || cells[len(cells)-1] == "test" {
			continue
		}
		rows++
		if !namedTest.MatchString(cells[len(cells)-1]) {
			t.Errorf("docs/grpc.md:%d: the row names no test: %s", i+1, line)
		}
	}
	if rows < 30 {
		t.Errorf("%d rows, want those of all options", rows)
	}
}

// TestEachOptionIsListed: docs/grpc.md says of all that gRPC can be told what it does to a call on
// a guess.
func TestEachOptionIsListed(t *testing.T) {
	page, listed := pages(t)["docs/grpc.md"], 0
	option := regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(.*\) (?:grpc\.)?(?:Call|Dial|Server)Option \{`)
	field := regexp.MustCompile("(?m)^\\t[A-Z]\\w* .*`json:\"(\\w+)")
	for _, path := range []string{"google.golang.org/grpc", "google.golang.org/grpc/experimental"} {
		out, err := exec.Command("go", "list", "-f", `{{$.Dir}}{{range .GoFiles}} {{.}}{{end}}`, path).Output()
		if err != nil {
			t.Fatal(err)
		}
		files := strings.Fields(string(out))
		for _, name := range files[1:] {
			b, err := os.ReadFile(filepath.Join(files[0], name))
			if err != nil {
				t.Fatal(err)
			}
			found := option.FindAllStringSubmatch(string(b), -1)
			if name == "service_config.go" {
				found = append(found, field.FindAllStringSubmatch(string(b), -1)...)
			}
			for _, m := range found {
				listed++
				if !strings.Contains(page, "`"+m[1]+"`") && !strings.Contains(page, "`experimental."+m[1]+"`") {
					t.Errorf("docs/grpc.md does not say what %s of %s does", m[1], path)
				}
			}
		}
	}
	if listed < 80 {
		t.Errorf("%d options and fields found", listed)
	}
}

// TestRoomsAreListed: docs/architecture.md names each package in its section of rooms.
func TestRoomsAreListed(t *testing.T) {
	_, rooms, ok := strings.Cut(pages(t)["docs/architecture.md"], "\n## 9. Rooms and layers\n")
	rooms, _, end := strings.Cut(rooms, "\n```\n\n")
	if !ok || !end {
		t.Fatal("docs/architecture.md has no section of rooms")
	}
	word, n := regexp.MustCompile(`[\w-]+`), 0
	named := word.FindAllString(rooms, -1)
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		top, _, _ := strings.Cut(path, "/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"api", "adapters", "cmd", "examples", "docs", "tools"}, top) ||
			d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case d.IsDir() && path != ".":
			if files, _ := filepath.Glob(filepath.Join(root, path, "*.go")); len(files) > 0 {
				if n++; !slices.Contains(named, d.Name()) {
					t.Errorf("docs/architecture.md, section 9, does not name %s", path)
				}
			}
		}
		return nil
	})
	if err != nil || n < 90 {
		t.Errorf("%d packages found: %v", n, err)
	}
}

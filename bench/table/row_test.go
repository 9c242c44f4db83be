package table

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() []Row {
	return []Row{
		{Is("system", "grpc"), Is("correct_percent", 90), Is("mean_ms", 40.0), Is("ratio_to_grpc", 1.0)},
		{Is("system", "foresay, \"do\""), Is("correct_percent", 100), Is("path", "spec"), Is("mean_ms", 10.000001)},
	}
}

func write(t *testing.T, f func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJSONKeepsOrderAndRoundTrips(t *testing.T) {
	want := sample()
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"system": "grpc"`, `"mean_ms": 40.0,`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the JSON lacks %s:\n%s", part, text)
		}
	}
	if strings.Index(string(text), `"path"`) > strings.Index(string(text), `"mean_ms": 10`) {
		t.Errorf("the cells are out of order:\n%s", text)
	}
	var got []Row
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other rows came back:\n%s", diff)
	}
}

func TestRowsThatAreNotFlatAreRejected(t *testing.T) {
	for _, text := range []string{`[]`, `3`, `{"a":[1]}`, `{"a":{"b":1}}`, `{"a":true}`, `{"a":null}`, `{"a":1e999}`,
		`{"a":99999999999999999999}`, `{"a"`, ``} {
		var r Row
		if err := r.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was read as %v, want an error", text, r)
		}
	}
}

func TestCSVHasOneColumnPerName(t *testing.T) {
	got := write(t, func(b *bytes.Buffer) error { return WriteCSV(b, sample()) })
	want := `system,correct_percent,path,mean_ms,ratio_to_grpc
grpc,90,,40,1
"foresay, ""do""",100,spec,10.000001,
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableIsAligned(t *testing.T) {
	got := write(t, func(b *bytes.Buffer) error { return Write(b, sample()) })
	want := `system         correct_percent  path  mean_ms  ratio_to_grpc
grpc                        90  -      40.000         1.0000
foresay, "do"              100  spec   10.000              -
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTableSaysOnceWhatIsTheSame: columns of one text stand above the table, measurements and what
// Is there in some rows only in it.
func TestTableSaysOnceWhatIsTheSame(t *testing.T) {
	var rows []Row
	for i := range 3 {
		rows = append(rows, Row{Is("system", "raft"), Is("site", []string{"a", "b", "c"}[i]), Is("jitter", "none"),
			Is("note", ""), Measure("p50_ms", 7)})
	}
	rows[1] = append(rows[1], Is("options", "direct"))
	var b strings.Builder
	if err := Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	const want = "all rows: system raft; jitter none\n\nsite  p50_ms  options\n"
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("%q, want it to begin with %q", b.String(), want)
	}
	b.Reset()
	rows = rows[:2]
	if err := Write(&b, rows); err != nil || !strings.HasPrefix(b.String(), "system") {
		t.Errorf("%v: %q", err, b.String())
	}
}

// TestTableWithoutDistributions: points of distributions, of which there are hundreds, are for
// figures.
func TestTableWithoutDistributions(t *testing.T) {
	rows := []Row{
		{Is("system", "a"), Is("site", "all"), Is("p50_ms", 1)},
		{Is("system", "a"), Is("site", OfAll), Is("percentile", 2), Is("ms", 7)},
		{Is("system", "a"), Is("site", OfAll), Is("percentile", 4), Is("ms", 8)},
	}
	var b bytes.Buffer
	if err := Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := "system  site  p50_ms\na       all        1\n\n2 points of distributions are not shown: JSON, CSV and " +
		"figures have them (--json, --out)\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

package table

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// fits fails the test unless the result's table fits on a screen and has all of its cells.
func fits(t *testing.T, name string, rows []Row) {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > tableWidth {
			t.Errorf("%s: a line of the table is %d wide: %s", name, n, line)
		}
	}
	for _, row := range rows {
		for _, c := range row {
			if s, ok := c.Value.(string); ok && !strings.Contains(b.String(), s) {
				t.Errorf("%s: the table lacks %s %s", name, c.Name, s)
			}
		}
	}
}

// TestWideTablesFit draws results of all shapes: no table is wider than a screen, and none lacks a
// value.
func TestWideTablesFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var rows []Row
		columns, kinds, texts := 1+rng.IntN(40), 1+rng.IntN(3), rng.IntN(5)
		long := strings.Repeat("long ", 1+rng.IntN(8)) + "x"
		var want []string
		for i := range 1 + rng.IntN(12) {
			var row Row
			for k := range texts {
				row = append(row, Is(fmt.Sprint("text", k), fmt.Sprint([]string{"t", long}[k%2], rng.IntN(1+k))))
			}
			for k := range columns {
				if k%kinds == i%kinds || rng.IntN(4) == 0 {
					n := rng.IntN(1 << 30)
					want = append(want, fmt.Sprint(n))
					row = append(row, Is(strings.Repeat("a_", rng.IntN(2))+fmt.Sprint("some_long_measure_", k, "_of_calls"), n))
				}
			}
			if len(row) > 0 {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			continue
		}
		fits(t, "drawn", rows)
		var b strings.Builder
		if err := Write(&b, rows); err != nil {
			t.Fatal(err)
		}
		words := make(map[string]bool)
		for _, w := range strings.Fields(strings.ReplaceAll(b.String(), ";", " ")) {
			words[w] = true
		}
		for _, n := range want {
			if !words[n] {
				t.Fatalf("the table lacks %s:\n%s", n, b.String())
			}
		}
	}
}

// TestExperimentsTablesFit: testdata/tables.json holds rows of each shape that the experiments'
// results have.
func TestExperimentsTablesFit(t *testing.T) {
	b, err := os.ReadFile("testdata/tables.json")
	if err != nil {
		t.Fatal(err)
	}
	var results []struct {
		Experiment string
		Rows       []Row
	}
	if err := json.Unmarshal(b, &results); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		fits(t, r.Experiment, r.Rows)
	}
	if len(results) < 15 {
		t.Errorf("only %d experiments", len(results))
	}
}

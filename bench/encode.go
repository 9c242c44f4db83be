package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteJSON writes the result as indented JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("bench: %s: write JSON: %w", r.Experiment, err)
	}
	return nil
}

// WriteCSV writes the rows under one header line. A cell that a row lacks is empty.
func (r *Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	names := r.columns()
	records := [][]string{names}
	for _, row := range r.Rows {
		record := make([]string, len(names))
		for i, name := range names {
			record[i] = row.Text(name)
		}
		records = append(records, record)
	}
	if err := c.WriteAll(records); err != nil {
		return fmt.Errorf("bench: %s: write CSV: %w", r.Experiment, err)
	}
	return nil
}

// WriteTable writes the rows as a table for people: text to the left, numbers to
// the right, and no more decimals than the largest of a column deserves. What is
// the same in all of them, and no measurement, stands above it.
func (r *Result) WriteTable(w io.Writer) error {
	names, common := r.split()
	if len(common) > 0 {
		if _, err := fmt.Fprintf(w, "all rows: %s\n\n", strings.Join(common, "; ")); err != nil {
			return fmt.Errorf("bench: %s: write table: %w", r.Experiment, err)
		}
	}
	lines := [][]string{names}
	numeric, decimals := make([]bool, len(names)), make([]int, len(names))
	for i, name := range names {
		largest := 0.0
		for _, row := range r.Rows {
			v, isNumber := row.Number(name)
			numeric[i] = numeric[i] || isNumber
			largest = max(largest, math.Abs(v))
		}
		decimals[i] = decimalsFor(largest)
	}
	for _, row := range r.Rows {
		line := make([]string, len(names))
		for i, name := range names {
			line[i] = text(row.Value(name), decimals[i])
			if line[i] == "" {
				line[i] = "-"
			}
		}
		lines = append(lines, line)
	}
	if _, err := io.WriteString(w, align(lines, numeric)); err != nil {
		return fmt.Errorf("bench: %s: write table: %w", r.Experiment, err)
	}
	return nil
}

// split returns the names of the columns for people, and what all rows say in the others, which are texts: a table that is wider than a
// screen is not read.
func (r *Result) split() (names, common []string) {
	for _, name := range r.columns() {
		first, isText := r.Rows[0].Value(name).(string)
		same := func(row Row) bool { return row.Value(name) == any(first) }
		switch {
		case len(r.Rows) < 3 || !isText || slices.ContainsFunc(r.Rows, func(row Row) bool { return !same(row) }):
			names = append(names, name)
		case first != "": // nobody has it
			common = append(common, name+" "+first)
		}
	}
	if len(names) == 0 {
		return r.columns(), nil
	}
	return names, common
}

func decimalsFor(largest float64) int {
	switch {
	case largest < 10:
		return 4
	case largest < 1000:
		return 3
	case largest < 10000:
		return 1
	}
	return 0
}

// columns returns the names of all cells, each where a row first has it: after
// the cell that precedes it there.
func (r *Result) columns() []string {
	var names []string
	for _, row := range r.Rows {
		at := 0
		for _, c := range row {
			if i := slices.Index(names, c.Name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, c.Name)
			at++
		}
	}
	return names
}

func align(lines [][]string, right []bool) string {
	widths := make([]int, len(right))
	for _, line := range lines {
		for i, s := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		var l strings.Builder
		for i, s := range line {
			if i > 0 {
				l.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if right[i] {
				l.WriteString(pad + s)
			} else {
				l.WriteString(s + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

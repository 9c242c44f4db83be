package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// WriteJSON writes the result as indented JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("bench %s: write JSON: %w", r.Experiment, err)
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
		return fmt.Errorf("bench %s: write CSV: %w", r.Experiment, err)
	}
	return nil
}

// columns returns the names of all cells, each where a row first has it: after
// the cell that precedes it there.
func (r *Result) columns() []string { return columnsOf(r.Rows) }

func columnsOf(rows []Row) []string {
	var names []string
	for _, row := range rows {
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

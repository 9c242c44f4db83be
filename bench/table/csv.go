package table

import (
	"encoding/csv"
	"io"
	"slices"
)

// WriteCSV writes rows under one header line. A cell that a row lacks is empty.
func WriteCSV(w io.Writer, rows []Row) error {
	c := csv.NewWriter(w)
	names := columnsOf(rows)
	records := [][]string{names}
	for _, row := range rows {
		record := make([]string, len(names))
		for i, name := range names {
			record[i] = row.Text(name)
		}
		records = append(records, record)
	}
	return c.WriteAll(records)
}

// columnsOf returns the names of all cells, each where a row first has it: after the cell that
// precedes it there.
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

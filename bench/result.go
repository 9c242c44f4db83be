package bench

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/foresay/foresay/bench/table"
)

// A Result is what one run of an experiment found.
type Result struct {
	Experiment string      `json:"experiment"`
	Mode       Mode        `json:"mode"`
	Rows       []table.Row `json:"rows"`
}

// WriteJSON writes the result as indented JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("bench %s: write JSON: %w", r.Experiment, err)
	}
	return nil
}

// WriteCSV writes the rows as [table.WriteCSV] does.
func (r *Result) WriteCSV(w io.Writer) error {
	if err := table.WriteCSV(w, r.Rows); err != nil {
		return fmt.Errorf("bench %s: write CSV: %w", r.Experiment, err)
	}
	return nil
}

// WriteTable writes the rows as [table.Write] does.
func (r *Result) WriteTable(w io.Writer) error {
	if err := table.Write(w, r.Rows); err != nil {
		return fmt.Errorf("bench %s: write table: %w", r.Experiment, err)
	}
	return nil
}

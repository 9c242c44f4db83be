package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Row is one measured point: the system, the parameters, the measures, in the
// order in which they are shown. It is a flat object in JSON.
type Row []Cell

// A Cell is one named value of a row.
type Cell struct {
	// Name tells the unit too: mean_ms, cpu_us_per_op.
	Name string
	// Value is a string, an int or a finite float64.
	Value any
}

// Is returns the cell of a name and a value.
func Is(name string, value any) Cell { return Cell{Name: name, Value: value} }

// Value returns the value of the named cell, nil if the row has none.
func (r Row) Value(name string) any {
	for _, c := range r {
		if c.Name == name {
			return c.Value
		}
	}
	return nil
}

// Text returns the named cell as text, "" if the row has none.
func (r Row) Text(name string) string {
	return Text(r.Value(name), -1)
}

// Number returns the named cell's number, and whether it has one.
func (r Row) Number(name string) (float64, bool) {
	switch v := r.Value(name).(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// MarshalJSON writes the row as one flat object in the order of its cells.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, c := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, fmt.Errorf("row: cell %q: %w", c.Name, err)
		}
		value, err := cellJSON(c.Value)
		if err != nil {
			return nil, fmt.Errorf("row: cell %q: %w", c.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes and keeps the order.
func (r *Row) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("row: want an object, got %v (%v)", t, err)
	}
	row := Row{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("row: %w", err)
		}
		value, err := d.Token()
		if err != nil {
			return fmt.Errorf("row: cell %v: %w", name, err)
		}
		c := Cell{Name: name.(string)}
		if c.Value, err = cellValue(value); err != nil {
			return fmt.Errorf("row: cell %q: %w", c.Name, err)
		}
		row = append(row, c)
	}
	*r = row
	return nil
}

// cellJSON writes a float64 with a decimal point, which tells it from an int.
func cellJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if _, ok := v.(float64); ok && err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

func cellValue(t json.Token) (any, error) {
	switch v := t.(type) {
	case string:
		return v, nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return v.Float64()
		}
		return strconv.Atoi(v.String())
	}
	return nil, fmt.Errorf("want text or a number, got %v", t)
}

// Text shows a value; decimals < 0 shows a number in full.
func Text(v any, decimals int) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	panic(fmt.Sprintf("a cell holds a %T", v))
}

// Measure makes a cell of a computed number. Six decimals keep a nanosecond of a
// millisecond and drop the noise of binary fractions.
func Measure(name string, v float64) Cell {
	return Cell{Name: name, Value: math.Round(v*1e6) / 1e6}
}

// OfAll is what stands for the site in rows that are points of a distribution over all sites.
const OfAll = "distribution"

// OfDistribution reports whether a row is such a point.
func ofDistribution(r Row) bool { return r.Value("site") == OfAll }

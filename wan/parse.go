package wan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/nearest"
)

// maxMilliseconds bounds every duration of a file: a day.
const maxMilliseconds = 24 * 60 * 60 * 1000

// Parse reads a matrix from JSON; file is its name in errors, which also tell the field, or the
// line of a syntax error:
//
//	{
//	  "sites": ["oregon", "ireland"],
//	  "rtt_ms": [[0, 140], [140, 0]],
//	  "links": [{"from": "oregon", "to": "ireland", "delay_ms": 90, "loss": 0.001}]
//	}
//
// Of rtt_ms, round trips and so symmetric, and delay_ms, one-way delays with a row for each sending
// site, one may be given; their diagonals are delays within sites. Each of links changes one
// direction afterwards: the fields that it gives, of delay_ms, jitter_ms, tail_ms, loss, rto_ms,
// bytes_per_second and down, as in [Link].
func Parse(file string, data []byte) (Matrix, error) {
	m, err := parse(data)
	if err != nil {
		return Matrix{}, fmt.Errorf("wan: %s:%w", file, err)
	}
	return m, nil
}

func parse(data []byte) (m Matrix, err error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return Matrix{}, syntaxError(data, err)
	}
	top, err := fields(whole, "", "sites", "rtt_ms", "delay_ms", "links")
	if err != nil {
		return Matrix{}, err
	}
	if m, err = parseSites(top["sites"]); err != nil {
		return Matrix{}, err
	}
	rtt, delay := top["rtt_ms"], top["delay_ms"]
	switch {
	case rtt != nil && delay != nil:
		return Matrix{}, fieldError("delay_ms", "rtt_ms is given already")
	case rtt != nil:
		err = parseTable(&m, "rtt_ms", rtt)
	case delay != nil:
		err = parseTable(&m, "delay_ms", delay)
	}
	if err != nil || top["links"] == nil {
		return m, err
	}
	err = elements(top["links"], "links", func(path string, v json.RawMessage) error {
		return parseLink(&m, path, v)
	})
	return m, err
}

func parseSites(v json.RawMessage) (Matrix, error) {
	if v == nil {
		return Matrix{}, fieldError("sites", "missing")
	}
	var sites []Site
	err := elements(v, "sites", func(path string, v json.RawMessage) error {
		s, err := scalar[Site](v, path, "a string")
		if err != nil {
			return err
		}
		if err := s.Validate(); err != nil {
			return fieldError(path, "%v", err)
		}
		if slices.Contains(sites, s) {
			return fieldError(path, "site %q is named twice", s)
		}
		sites = append(sites, s)
		return nil
	})
	if err != nil {
		return Matrix{}, err
	}
	return newMatrix(sites)
}

// parseTable reads rtt_ms or delay_ms into m.
func parseTable(m *Matrix, name string, v json.RawMessage) error {
	n := len(m.sites)
	table := make([]time.Duration, 0, n*n)
	rows, err := 0, error(nil)
	err = elements(v, name, func(path string, v json.RawMessage) error {
		rows++
		before := len(table)
		err := elements(v, path, func(path string, v json.RawMessage) error {
			d, err := milliseconds(v, path)
			table = append(table, d)
			return err
		})
		if columns := len(table) - before; err == nil && columns != n {
			err = fieldError(path, "%d numbers for %d sites", columns, n)
		}
		return err
	})
	if err != nil {
		return err
	}
	if rows != n {
		return fieldError(name, "%d rows for %d sites", rows, n)
	}
	for i, d := range table {
		from, to := i/n, i%n
		if name == "rtt_ms" {
			if back := table[to*n+from]; back != d {
				return fieldError(fmt.Sprintf("%s[%d][%d]", name, from, to),
					"%v, but %v in the other direction; one-way delays go into delay_ms", d, back)
			}
			d = oneWay(d, from <= to)
		}
		m.links[i].Delay = d
	}
	return nil
}

func parseLink(m *Matrix, path string, v json.RawMessage) error {
	names := []string{"from", "to", "delay_ms", "jitter_ms", "tail_ms", "loss", "rto_ms", "bytes_per_second", "down"}
	given, err := fields(v, path, names...)
	if err != nil {
		return err
	}
	var p Path
	for _, end := range [...]struct {
		name string
		site *Site
	}{{"from", &p.From}, {"to", &p.To}} {
		at := path + "." + end.name
		if given[end.name] == nil {
			return fieldError(at, "missing")
		}
		if *end.site, err = scalar[Site](given[end.name], at, "a string"); err != nil {
			return err
		}
		if !m.Has(*end.site) {
			return fieldError(at, "unknown site %q (the sites are %q)", *end.site, m.sites)
		}
	}
	l := &m.links[m.index(p)]
	for _, name := range names[2:] { // in a fixed order, so that of two errors always the same one is told
		v, at := given[name], path+"."+name
		if v == nil {
			continue
		}
		switch name {
		case "delay_ms":
			l.Delay, err = milliseconds(v, at)
		case "jitter_ms":
			l.Jitter, err = milliseconds(v, at)
		case "tail_ms":
			l.Tail, err = milliseconds(v, at)
		case "rto_ms":
			l.RTO, err = milliseconds(v, at)
		case "loss":
			l.Loss, err = scalar[float64](v, at, "a number")
		case "bytes_per_second":
			l.BytesPerSecond, err = scalar[int64](v, at, "a whole number")
		case "down":
			l.Down, err = scalar[bool](v, at, "true or false")
		}
		if err == nil {
			if invalid := l.Validate(); invalid != nil {
				err = fieldError(at, "%v", invalid)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fields returns the members of an object, of which it knows the names.
func fields(v json.RawMessage, path string, names ...string) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(v))
	if t, _ := d.Token(); t != json.Delim('{') {
		return nil, fieldError(path, "want an object, got %s", shorten(v))
	}
	given := make(map[string]json.RawMessage)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fieldError(path, "%v", err) // v is valid JSON
		}
		name, at := t.(string), strings.TrimPrefix(path+"."+t.(string), ".")
		if !slices.Contains(names, name) {
			return nil, fieldError(at, "unknown field (want one of %s%s)", strings.Join(names, ", "), nearest.Hint(name, names))
		}
		if given[name] != nil {
			return nil, fieldError(at, "given twice")
		}
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return nil, fieldError(at, "%v", err)
		}
		given[name] = member
	}
	return given, nil
}

// elements calls f for each element of an array.
func elements(v json.RawMessage, path string, f func(path string, v json.RawMessage) error) error {
	var vs []json.RawMessage
	if err := json.Unmarshal(v, &vs); err != nil || vs == nil {
		return fieldError(path, "want an array, got %s", shorten(v))
	}
	for i, v := range vs {
		if err := f(fmt.Sprintf("%s[%d]", path, i), v); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(v json.RawMessage, path string) (time.Duration, error) {
	ms, err := scalar[float64](v, path, "a number of milliseconds")
	if err == nil && (ms < 0 || ms > maxMilliseconds) {
		err = fieldError(path, "%v ms is not from 0 to a day", ms)
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func scalar[T any](v json.RawMessage, path, want string) (T, error) {
	var x *T
	if err := json.Unmarshal(v, &x); err != nil || x == nil {
		var zero T
		return zero, fieldError(path, "want %s, got %s", want, shorten(v))
	}
	return *x, nil
}

// fieldError says what is wrong with the field at path, or with the whole if that is empty.
func fieldError(path, format string, args ...any) error {
	if path != "" {
		path += ": "
	}
	return errors.New(" " + path + fmt.Sprintf(format, args...))
}

// syntaxError gives an error of encoding/json the line and column that it lacks.
func syntaxError(data []byte, err error) error {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return fmt.Errorf(" %w", err)
	}
	before := data[:min(max(0, int(s.Offset)-1), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("%d:%d: %w", line, column, err)
}

// shorten returns v for an error's text.
func shorten(v json.RawMessage) string {
	const limit = 40
	if len(v) > limit {
		return string(v[:limit]) + "..."
	}
	return string(v)
}

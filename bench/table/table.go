package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// tableWidth is how many columns of text a table takes at most: what a terminal shows without
// wrapping.
const tableWidth = 120

// Write writes the rows as a table for people: text to the left, numbers to the right, and no
// more decimals than the largest of a column deserves. Texts that are the same in all of them stand
// above it. A table that would be wider than 120 characters has equal numbers there, too, and is
// several if that does not do: one for each kind of row, one for each value of a long text, and
// then one below the other, with the columns that tell the rows apart in each. The points of
// distributions, which figures show, are only counted.
func Write(w io.Writer, rows []Row) error {
	t := &tables{}
	shown := slices.DeleteFunc(slices.Clone(rows), ofDistribution)
	if len(shown) > 0 {
		t.add(shown, "all rows: ")
	}
	if n := len(rows) - len(shown); n > 0 {
		t.blocks = append(t.blocks, fmt.Sprintf(
			"%d points of distributions are not shown: JSON, CSV and figures have them (--json, --out)\n", n))
	}
	_, err := io.WriteString(w, strings.Join(t.blocks, "\n"))
	return err
}

// tables are blocks of lines: headings and tables.
type tables struct{ blocks []string }

// add adds the rows' tables. lead is what begins the line that says what is the same in all of
// these rows.
func (t *tables) add(rows []Row, lead string) {
	names, common := split(rows, false)
	if widthOf(rows, names) > tableWidth {
		names, common = split(rows, true)
	}
	if len(common) > 0 {
		t.blocks = append(t.blocks, wrapped(lead, common))
	}
	if widthOf(rows, names) <= tableWidth {
		t.blocks = append(t.blocks, newGrid(rows, names, false).String())
		return
	}
	if kinds := kindsOf(rows, names); len(kinds) > 1 {
		for _, kind := range kinds {
			t.add(without(kind, common), "rows with ")
		}
		return
	}
	if parts := byLongTexts(rows, names); len(parts) > 1 {
		for _, part := range parts {
			t.add(without(part, common), "rows with ")
		}
		return
	}
	t.bands(rows, names)
}

// common is a column that says the same in all rows.
type common struct{ name, value string }

// without returns the rows without columns of which a line above says what they hold.
func without(rows []Row, said []common) []Row {
	out := make([]Row, len(rows))
	for i, row := range rows {
		out[i] = slices.DeleteFunc(slices.Clone(row), func(c Cell) bool {
			return slices.ContainsFunc(said, func(k common) bool { return k.name == c.Name })
		})
	}
	return out
}

// wrapped writes what is the same in all rows, on lines that are not too long.
func wrapped(lead string, all []common) string {
	var b strings.Builder
	line := lead
	for i, c := range all {
		part := c.name + " " + c.value
		if i < len(all)-1 {
			part += "; "
		}
		if line != lead && utf8.RuneCountInString(line+part) > tableWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = "  "
		}
		line += part
	}
	return b.String() + line + "\n"
}

// split returns the names of the columns for people, and what all rows say in the others: texts of
// three rows or more, and where room is needed also numbers, and those of two.
func split(rows []Row, numbers bool) (names []string, all []common) {
	for _, name := range columnsOf(rows) {
		first := rows[0].Value(name)
		_, isText := first.(string)
		same := func(row Row) bool { return row.Value(name) == first }
		switch {
		case len(rows) < 2 || !numbers && (len(rows) < 3 || !isText) || slices.ContainsFunc(rows, func(row Row) bool {
			return !same(row)
		}):
			names = append(names, name)
		case first != any(""): // nobody has it
			all = append(all, common{name, Text(first, -1)})
		}
	}
	if len(names) == 0 {
		return columnsOf(rows), nil
	}
	return names, all
}

// kindsOf parts rows that measure different things: rows of one kind have most of the kind's
// numbers, or of their own, in common.
func kindsOf(rows []Row, names []string) (kinds [][]Row) {
	var columns []map[string]bool
	for _, row := range rows {
		own := make(map[string]bool)
		for _, name := range names {
			if _, ok := row.Number(name); ok {
				own[name] = true
			}
		}
		at := slices.IndexFunc(columns, func(kind map[string]bool) bool {
			shared := 0
			for name := range own {
				if kind[name] {
					shared++
				}
			}
			return 2*shared > min(len(own), len(kind))
		})
		if at < 0 {
			kinds, columns = append(kinds, nil), append(columns, own)
			at = len(kinds) - 1
		}
		kinds[at] = append(kinds[at], row)
		for name := range own {
			columns[at][name] = true
		}
	}
	return kinds
}

// longText is how wide a column of texts is that rather stands above its rows.
const longText = 20

// byLongTexts parts the rows by what they have in columns of long texts that are the same in
// several rows.
func byLongTexts(rows []Row, names []string) (parts [][]Row) {
	var long []string
	for _, name := range names {
		widest, values := 0, make(map[string]bool)
		for _, row := range rows {
			if s, ok := row.Value(name).(string); ok {
				widest = max(widest, utf8.RuneCountInString(s))
			}
			values[row.Text(name)] = true
		}
		if widest > longText && 3*len(values) <= len(rows) {
			long = append(long, name)
		}
	}
	at := make(map[string]int)
	for _, row := range rows {
		key := ""
		for _, name := range long {
			key += row.Text(name) + "\x00"
		}
		i, ok := at[key]
		if !ok {
			i = len(parts)
			at[key], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], row)
	}
	return parts
}

// bands adds tables of some columns each. The columns that tell the rows apart are in all of them,
// or if these are too wide themselves, the rows' numbers.
func (t *tables) bands(rows []Row, names []string) {
	keys := keysOf(rows, names)
	if newGrid(rows, keys, true).width() > tableWidth/2 {
		keys = []string{"row"}
		numbered := make([]Row, len(rows))
		for i, row := range rows {
			numbered[i] = append(Row{Is("row", i+1)}, row...)
		}
		rows = numbered
	}
	rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(keys, n) })
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && newGrid(rows, slices.Concat(keys, rest[:n+1]), true).width() <= tableWidth {
			n++
		}
		t.blocks = append(t.blocks, newGrid(rows, slices.Concat(keys, rest[:n]), true).String())
		rest = rest[n:]
	}
}

// keysOf returns the first columns that tell the rows apart, but at least those of texts.
func keysOf(rows []Row, names []string) (keys []string) {
	for _, name := range names {
		apart := make(map[string]bool)
		for _, row := range rows {
			key := ""
			for _, k := range keys {
				key += row.Text(k) + "\x00"
			}
			apart[key] = true
		}
		if len(apart) == len(rows) && len(keys) > 0 {
			break
		}
		if slices.ContainsFunc(rows, func(r Row) bool {
			_, measured := r.Value(name).(float64)
			return !measured && r.Value(name) != nil
		}) {
			keys = append(keys, name)
		}
	}
	return keys
}

func widthOf(rows []Row, names []string) int { return newGrid(rows, names, false).width() }

// grid is a table's text.
type grid struct {
	lines   [][]string // the header's first
	header  int        // lines
	widths  []int
	numeric []bool
}

// newGrid makes the table of some columns. Wrapped, names of columns take several lines if they are
// longer than what is below.
func newGrid(rows []Row, names []string, wrap bool) *grid {
	g := &grid{numeric: make([]bool, len(names)), widths: make([]int, len(names))}
	body := make([][]string, len(rows))
	for i := range body {
		body[i] = make([]string, len(names))
	}
	heads := make([][]string, len(names))
	for i, name := range names {
		largest := 0.0
		for _, row := range rows {
			v, isNumber := row.Number(name)
			g.numeric[i] = g.numeric[i] || isNumber
			largest = max(largest, math.Abs(v))
		}
		for j, row := range rows {
			if body[j][i] = Text(row.Value(name), decimalsFor(largest)); body[j][i] == "" {
				body[j][i] = "-"
			}
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(body[j][i]))
		}
		if heads[i] = []string{name}; wrap {
			heads[i] = folded(name, g.widths[i])
		}
		g.header = max(g.header, len(heads[i]))
		for _, s := range heads[i] {
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(s))
		}
	}
	for n := range g.header {
		line := make([]string, len(names))
		for i, head := range heads {
			if at := n - g.header + len(head); at >= 0 {
				line[i] = head[at]
			}
		}
		g.lines = append(g.lines, line)
	}
	g.lines = append(g.lines, body...)
	return g
}

// folded breaks a name after underscores where it would be wider than width, or than a short word.
func folded(name string, width int) (lines []string) {
	width = max(width, 10)
	line := ""
	for part := range strings.SplitAfterSeq(name, "_") {
		if line != "" && len(line)+len(part) > width {
			lines = append(lines, line)
			line = ""
		}
		line += part
	}
	return append(lines, line)
}

func (g *grid) width() int {
	sum := 2 * max(len(g.widths)-1, 0)
	for _, w := range g.widths {
		sum += w
	}
	return sum
}

func (g *grid) String() string {
	var b strings.Builder
	for _, line := range g.lines {
		var l strings.Builder
		for i, s := range line {
			if i > 0 {
				l.WriteString("  ")
			}
			pad := strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(s))
			if g.numeric[i] {
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

package figure

import (
	"fmt"

	"github.com/foresay/foresay/bench/table"
)

// A Look is how a series of a figure is told from the others.
type Look struct {
	Name, Colour, Glyph, Dashes string
	// All is what it looks like in every respect.
	All string
	// Known says that it is a system, which looks alike in all figures.
	Known bool
}

// LooksOf returns how the series of some rows look.
func LooksOf(f Spec, rows []table.Row) []Look {
	lines, _ := f.lines(rows)
	return seen(lines)
}

// LooksOfNames returns how series of some names look in one figure.
func LooksOfNames(names ...string) []Look {
	var lines []line
	for _, n := range names {
		lines = append(lines, line{name: n})
	}
	return seen(lines)
}

func seen(lines []line) []Look {
	var out []Look
	for i, l := range looks(lines) {
		one := Look{Name: lines[i].name, Colour: fmt.Sprint(l.hue), Dashes: fmt.Sprint(l.dashes), All: fmt.Sprint(l)}
		if l.glyph != nil {
			one.Glyph = fmt.Sprintf("%T", l.glyph)
		}
		_, one.Known = lookOf(one.Name)
		out = append(out, one)
	}
	return out
}

package bench

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A mark is a number that a paper's text states, drawn beside what was measured. Curves of papers' figures are not marks: nobody
// has their numbers.
type mark struct {
	// line is the series that it belongs to, whose colour it gets.
	line string
	// x is its place; NaN if the paper does not tell, which draws a line all across. In a figure with bars across, category is the place instead.
	x        float64
	category string
	y        float64
	// bound is what the paper puts before the number, "over" say; empty if it is the number itself.
	bound string
	// source is who has measured the number, if it is not the paper's.
	source string
}

// nowhere is the place of a mark for which the paper has none.
func nowhere() float64 { return math.NaN() }

// marksNote is below a figure with marks of a paper.
const marksNote = "triangles, dotted lines: numbers of the paper, as stated in the text"

// othersNote follows if some marks are of others than the paper's authors.
const othersNote = "circles: programs of others, measured"

func (m mark) name() string {
	name := m.line + ", " + cmp.Or(m.source, "paper")
	if m.bound != "" {
		name += " (" + m.bound + ")"
	}
	return name
}

// noted tells whether a paper's numbers are among the marks. Those of others the legend explains.
func (f figure) noted() bool {
	return slices.ContainsFunc(f.marks, func(m mark) bool { return m.source == "" })
}

// others tells whether some are of others.
func (f figure) others() bool {
	return slices.ContainsFunc(f.marks, func(m mark) bool { return m.source != "" })
}

// addMarks draws the marks whose series is drawn, and returns their names.
func (f figure) addMarks(p *plot.Plot, legend *plot.Legend, lines []line, categories []string) (names []string, err error) {
	for _, m := range f.marks {
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == m.line })
		if i < 0 {
			continue
		}
		at := plotter.XY{X: m.x, Y: m.y}
		if len(f.across) > 0 {
			c := slices.Index(categories, m.category)
			if c < 0 {
				continue
			}
			at = plotter.XY{X: m.y, Y: float64(len(categories) - 1 - c)}
		}
		if math.IsNaN(at.X) {
			err = f.addLevel(p, legend, m, f.markColour(lines, i))
		} else {
			err = f.addPoint(p, legend, m, f.markColour(lines, i), at, !slices.Contains(names, m.name()))
		}
		if err != nil {
			return nil, err
		}
		names = append(names, m.name())
	}
	return names, nil
}

// addPoint draws a mark at its place. The first of a name is in the legend.
func (f figure) addPoint(p *plot.Plot, legend *plot.Legend, m mark, c color.Color, at plotter.XY, first bool) error {
	points, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(6.5), Shape: draw.TriangleGlyph{}}
	if m.source != "" {
		points.Shape = draw.RingGlyph{}
	}
	p.Add(points)
	if first {
		legend.Add(m.name(), points)
	}
	return nil
}

// addLevel draws a line at the mark's value from one side to the other.
func (f figure) addLevel(p *plot.Plot, legend *plot.Legend, m mark, c color.Color) error {
	level, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: m.y}, {X: p.X.Max, Y: m.y}})
	if err != nil {
		return err
	}
	level.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(1.5), vg.Points(2.5)}}
	p.Add(level)
	legend.Add(m.name(), level)
	return nil
}

func (f figure) markColour(lines []line, series int) color.Color {
	if len(f.across) > 0 {
		return color.Gray{Y: 0x33} // it stands on a bar of its series' colour
	}
	return looks(lines)[series].hue.color()
}

package bench

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A mark is a number that a paper's text states, drawn beside what was measured. Curves of papers'
// figures are not marks: nobody has their numbers.
type mark struct {
	// line is the series that it belongs to, whose colour it gets.
	line string
	// x is its place; NaN if the paper does not tell, which draws a line all across. In a figure
	// with bars across, category is the place instead.
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

// marksNote is below a figure with marks of a paper, after what these look like.
const marksNote = ": published figures, as stated in the text"

// othersNote follows if some marks are of others than the paper's authors.
const othersNote = "circles: other implementations, measured"

// nameOf says in the legend what a mark is. Those on bars show by their place to which series they
// belong.
func (f spec) nameOf(m mark) string {
	name := cmp.Or(m.source, "paper")
	if len(f.across) == 0 {
		name = m.line + ", " + name
	}
	if m.bound != "" {
		name += " (" + m.bound + ")"
	}
	return name
}

// note explains the marks of a paper, "" if there are none. Those of others have a note of their
// own.
func (f spec) note() string {
	var kinds []string
	paper := func(m mark) bool { return m.source == "" }
	switch {
	case len(f.across) > 0 && slices.ContainsFunc(f.marks, paper):
		kinds = []string{"triangles, each on its bar"}
	default:
		if slices.ContainsFunc(f.marks, func(m mark) bool { return paper(m) && !math.IsNaN(m.x) }) {
			kinds = append(kinds, "triangles")
		}
		if slices.ContainsFunc(f.marks, func(m mark) bool { return paper(m) && math.IsNaN(m.x) }) {
			kinds = append(kinds, "dotted lines")
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return strings.Join(kinds, ", ") + marksNote
}

// others tells whether some are of others.
func (f spec) others() bool {
	return slices.ContainsFunc(f.marks, func(m mark) bool { return m.source != "" })
}

// addMarks draws the marks whose series is drawn, and returns their names.
func (f spec) addMarks(p *plot.Plot, legend *plot.Legend, lines []line, categories []string) (names []string, err error) {
	for _, m := range f.marks {
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == m.line })
		if i < 0 {
			continue
		}
		at, up := plotter.XY{X: m.x, Y: m.y}, vg.Length(0)
		if len(f.across) > 0 {
			c := slices.Index(categories, m.category)
			if c < 0 {
				continue
			}
			at, up = plotter.XY{X: m.y, Y: float64(len(categories) - 1 - c)}, offsetAcross(i, len(lines))
		}
		if math.IsNaN(at.X) {
			err = f.addLevel(p, legend, m, f.markColour(lines, i))
		} else {
			err = f.addPoint(p, legend, m, f.markColour(lines, i), at, up, !slices.Contains(names, f.nameOf(m)))
		}
		if err != nil {
			return nil, err
		}
		names = append(names, f.nameOf(m))
	}
	return names, nil
}

// addPoint draws a mark at its place, or so much above it. The first of a name is in the legend.
func (f spec) addPoint(p *plot.Plot, legend *plot.Legend, m mark, c color.Color, at plotter.XY, up vg.Length, first bool) error {
	points, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(6.5), Shape: draw.TriangleGlyph{}}
	if m.source != "" {
		points.Shape = draw.RingGlyph{}
	}
	if first {
		inLegend := *points
		legend.Add(f.nameOf(m), &inLegend)
	}
	points.Shape = raised{points.Shape, up}
	p.Add(points)
	return nil
}

// raised is a glyph so much above its place.
type raised struct {
	draw.GlyphDrawer
	up vg.Length
}

// DrawGlyph implements draw.GlyphDrawer.
func (r raised) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	at.Y += r.up
	r.GlyphDrawer.DrawGlyph(c, sty, at)
}

// addLevel draws a line at the mark's value from one side to the other.
func (f spec) addLevel(p *plot.Plot, legend *plot.Legend, m mark, c color.Color) error {
	level, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: m.y}, {X: p.X.Max, Y: m.y}})
	if err != nil {
		return err
	}
	level.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(1.5), vg.Points(2.5)}}
	p.Add(level)
	legend.Add(f.nameOf(m), level)
	return nil
}

func (f spec) markColour(lines []line, series int) color.Color {
	if len(f.across) > 0 {
		return color.Gray{Y: 0x33} // it stands on a bar of its series' colour
	}
	return looks(lines)[series].hue.color()
}

package figure

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

// A Mark is a number that a paper's text states, drawn beside what was measured. Curves of papers'
// figures are not marks: nobody has their numbers.
type Mark struct {
	// Line is the series that it belongs to, whose colour it gets.
	Line string
	// X is its place; NaN if the paper does not tell, which draws a line all across. In a figure
	// with bars across, Category is the place instead.
	X        float64
	Category string
	Y        float64
	// Bound is what the paper puts before the number, "over" say; empty if it is the number itself.
	Bound string
	// Source is who has measured the number, if it is not the paper's.
	Source string
}

// Nowhere is the place of a mark for which the paper has none.
func Nowhere() float64 { return math.NaN() }

// marksNote is below a figure with marks of a paper, after what these look like.
const marksNote = ": published figures, as stated in the text"

// othersNote follows if some marks are of others than the paper's authors.
const othersNote = "circles: other implementations, measured"

// nameOf says in the legend what a mark is. Those on bars show by their place to which series they
// belong.
func (f Spec) nameOf(m Mark) string {
	name := cmp.Or(m.Source, "paper")
	if len(f.Across) == 0 {
		name = m.Line + ", " + name
	}
	if m.Bound != "" {
		name += " (" + m.Bound + ")"
	}
	return name
}

// note explains the marks of a paper, "" if there are none. Those of others have a note of their
// own.
func (f Spec) note() string {
	var kinds []string
	paper := func(m Mark) bool { return m.Source == "" }
	switch {
	case len(f.Across) > 0 && slices.ContainsFunc(f.Marks, paper):
		kinds = []string{"triangles, each on its bar"}
	default:
		if slices.ContainsFunc(f.Marks, func(m Mark) bool { return paper(m) && !math.IsNaN(m.X) }) {
			kinds = append(kinds, "triangles")
		}
		if slices.ContainsFunc(f.Marks, func(m Mark) bool { return paper(m) && math.IsNaN(m.X) }) {
			kinds = append(kinds, "dotted lines")
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return strings.Join(kinds, ", ") + marksNote
}

// others reports whether some are of others.
func (f Spec) others() bool {
	return slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Source != "" })
}

// addMarks draws the marks whose series is drawn, and returns their names.
func (f Spec) addMarks(
	p *plot.Plot, legend *plot.Legend, lines []line, categories []string,
) (names []string, err error) {
	for _, m := range f.Marks {
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == m.Line })
		if i < 0 {
			continue
		}
		at, up := plotter.XY{X: m.X, Y: m.Y}, vg.Length(0)
		if len(f.Across) > 0 {
			c := slices.Index(categories, m.Category)
			if c < 0 {
				continue
			}
			at, up = plotter.XY{X: m.Y, Y: float64(len(categories) - 1 - c)}, offsetAcross(i, len(lines))
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
func (f Spec) addPoint(
	p *plot.Plot, legend *plot.Legend, m Mark, c color.Color, at plotter.XY, up vg.Length, first bool,
) error {
	points, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(6.5), Shape: draw.TriangleGlyph{}}
	if m.Source != "" {
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
func (f Spec) addLevel(p *plot.Plot, legend *plot.Legend, m Mark, c color.Color) error {
	level, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: m.Y}, {X: p.X.Max, Y: m.Y}})
	if err != nil {
		return err
	}
	level.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(1.5), vg.Points(2.5)}}
	p.Add(level)
	legend.Add(f.nameOf(m), level)
	return nil
}

func (f Spec) markColour(lines []line, series int) color.Color {
	if len(f.Across) > 0 {
		return color.Gray{Y: 0x33} // it stands on a bar of its series' colour
	}
	return looks(lines)[series].hue.color()
}

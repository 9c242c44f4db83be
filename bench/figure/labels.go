package figure

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labels returns the lines that can be named where they end, in place of a legend: all of them, or
// none. They must end at the plot's right side, and a paper's marks need a legend anyway.
func (f Spec) labels(lines []line, marked bool) []line {
	if f.Bars || f.Scattered || marked || len(f.Across) > 0 || len(lines) < 2 {
		return nil
	}
	end := lines[0].end().X
	if slices.ContainsFunc(lines, func(l line) bool { return l.end().X != end }) {
		return nil
	}
	return lines
}

// drawLabels names the lines beside the plot, at the heights at which they end, or as near as they
// can be without running into each other. It returns false if they have no room.
func drawLabels(c draw.Canvas, p *plot.Plot, area draw.Canvas, lines []line, text draw.TextStyle) bool {
	text.XAlign, text.YAlign = draw.XLeft, draw.YCenter
	apart := 1.35 * text.Height("x")
	if vg.Length(len(lines))*apart > area.Max.Y-area.Min.Y {
		return false
	}
	_, height := p.Transforms(&area)
	style := looks(lines)
	order := make([]int, len(lines))
	at := make([]vg.Length, len(lines))
	for i, l := range lines {
		order[i], at[i] = i, height(l.end().Y)
	}
	ends := slices.Clone(at)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	least := area.Min.Y
	for _, i := range order { // upwards
		at[i] = max(at[i], least)
		least = at[i] + apart
	}
	most := area.Max.Y
	for _, i := range slices.Backward(order) { // and back
		at[i] = min(at[i], most)
		most = at[i] - apart
	}
	from := area.Max.X + vg.Points(6)
	for i, l := range lines {
		s := style[i]
		thin := draw.LineStyle{Color: s.hue.color(), Width: vg.Points(0.6)}
		c.StrokeLine2(thin, from, ends[i], from+vg.Points(12), at[i])
		sample, to := from+vg.Points(12), from+vg.Points(34)
		c.StrokeLine2(draw.LineStyle{Color: s.hue.color(), Width: s.width, Dashes: s.dashes}, sample, at[i], to, at[i])
		if s.glyph != nil {
			c.DrawGlyph(draw.GlyphStyle{Color: s.hue.color(), Shape: s.glyph, Radius: vg.Points(3)},
				vg.Point{X: (sample + to) / 2, Y: at[i]})
		}
		c.FillText(text, vg.Point{X: to + vg.Points(5), Y: at[i]}, l.name)
	}
	return true
}

package figure

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func (f Spec) addBars(p *plot.Plot, legend *plot.Legend, lines []line) error {
	var xs []float64
	for _, l := range lines {
		for _, xy := range l.points {
			if !slices.Contains(xs, xy.X) {
				xs = append(xs, xy.X)
			}
		}
	}
	slices.Sort(xs)
	labels := make([]string, len(xs))
	for i, x := range xs {
		labels[i] = strconv.FormatFloat(x, 'f', -1, 64)
	}
	width := min(vg.Points(26), (figureWidth*0.5)/vg.Length(len(xs)*(len(lines)+1)))
	style := looks(lines)
	for i, l := range lines {
		values := make(plotter.Values, len(xs))
		for _, xy := range l.points {
			values[slices.Index(xs, xy.X)] = xy.Y
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color = style[i].hue.color()
		bars.LineStyle.Width = 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(lines)-1)/2)
		p.Add(bars)
		legend.Add(l.name, bars)
	}
	p.NominalX(labels...)
	p.X.Padding = vg.Points(3)
	p.X.Min, p.X.Max = -0.5, math.Max(float64(len(xs))-0.5, 0.5)
	return nil
}

// acrossHeight is the height of a figure with n groups of horizontal bars.
func acrossHeight(n int) vg.Length {
	return max(figureHeight, vg.Length(n)*0.36*vg.Inch+1.1*vg.Inch)
}

// widthAcross is the width of each of n horizontal bars of a group, and offsetAcross how far the
// i-th is above the group's middle.
func widthAcross(n int) vg.Length { return 0.28 * vg.Inch / vg.Length(n) }

func offsetAcross(i, n int) vg.Length {
	return -widthAcross(n) * vg.Length(float64(i)-float64(n-1)/2)
}

func (f Spec) addAcross(p *plot.Plot, legend *plot.Legend, lines []line, categories []string) error {
	n := len(categories)
	names := slices.Clone(categories)
	slices.Reverse(names) // the axis grows upwards; the first row belongs on top
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	p.X.Label.Text = f.YLabel
	p.X.Tick.Marker = steps{}
	p.X.Min = 0
	p.Add(gridAcross(true))
	width := widthAcross(len(lines))
	style := looks(lines)
	for i, l := range lines {
		values := make(plotter.Values, n)
		for _, xy := range l.points {
			values[n-1-int(xy.X)] = xy.Y
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Horizontal = true
		bars.Color = style[i].hue.color()
		bars.LineStyle.Width = 0
		bars.Offset = offsetAcross(i, len(lines))
		p.Add(bars)
		legend.Add(l.name, bars)
	}
	if !f.Ratio {
		return nil
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	one.LineStyle = draw.LineStyle{Color: grey.color(), Width: vg.Points(1.2),
		Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
	p.Add(one)
	return nil
}

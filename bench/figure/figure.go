package figure

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/foresay/foresay/bench/table"
)

// A Spec says how rows become a picture.
type Spec struct {
	Suffix string // of the file's name; empty for an experiment's only figure
	Title  string
	// X and Y are columns of numbers.
	X, XLabel string
	Y, YLabel string
	// Series are the columns that tell the lines apart.
	Series []string
	// Where, if it has a name, picks the rows that have this cell.
	Where table.Cell
	// Bars draws bars side by side for each x, instead of lines.
	Bars bool
	// Scattered says that X is measured as well: lines have few places in common.
	Scattered bool
	// Floor, if not empty, is the column of Y's floor, which is drawn as a line of its own.
	Floor string
	// Marks are a paper's numbers.
	Marks []Mark
	// Across, if not empty, draws horizontal bars of Y for each combination of these
	// columns, in place of X; Ratio draws a mark at 1.
	Across []string
	Ratio  bool
}

// A Picture is a picture of a result.
type Picture struct {
	// Name begins with the experiment's and has no extension.
	Name string
	SVG  []byte
}

// Draw draws the figures of an experiment, whose name their names begin with. time is the kind of
// time that it ran in. What has no rows, as after a quick run, is left out, but an error if nothing
// else is left.
func Draw(name, time string, figures []Spec, rows []table.Row) ([]Picture, error) {
	var out []Picture
	for i, f := range figures {
		name := name
		if f.Suffix != "" {
			name += "-" + f.Suffix
		}
		if last := i == len(figures)-1; !f.wanted(rows) && (len(out) > 0 || !last) {
			continue
		}
		svg, err := f.draw(time, rows)
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", name, err)
		}
		out = append(out, Picture{Name: name, SVG: svg})
	}
	return out, nil
}

// wanted reports whether some of the rows are meant for the figure.
func (f Spec) wanted(rows []table.Row) bool {
	return f.Where.Name == "" || slices.ContainsFunc(rows, func(r table.Row) bool {
		return r.Value(f.Where.Name) == f.Where.Value
	})
}

// A line is one series of a figure.
type line struct {
	name   string
	points plotter.XYs // by x, or in the order of the rows if x is measured
}

// end is the line's last point.
func (l line) end() struct{ X, Y float64 } { return l.points[len(l.points)-1] }

// lines returns the figure's series in the order in which the rows have them, and the
// names of the places on an axis that has no numbers.
func (f Spec) lines(rows []table.Row) (lines []line, categories []string) {
	floor := line{name: "floor"}
	for _, row := range rows {
		if f.Where.Name != "" && row.Value(f.Where.Name) != f.Where.Value {
			continue
		}
		y, ok := row.Number(f.Y)
		if !ok {
			continue // nor has it a place
		}
		x, ok := f.place(row, &categories)
		if !ok {
			continue
		}
		name := f.Label(row, f.Series)
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == name })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{name: name})
		}
		lines[i].points = append(lines[i].points, plotter.XY{X: x, Y: y})
		if least, ok := row.Number(f.Floor); ok && !slices.ContainsFunc(floor.points, func(p plotter.XY) bool {
			return p.X == x
		}) {
			floor.points = append(floor.points, plotter.XY{X: x, Y: least})
		}
	}
	if len(floor.points) > 0 {
		slices.SortFunc(floor.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		lines = append(lines, floor)
	}
	for _, l := range lines {
		if !f.Scattered {
			slices.SortFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		}
	}
	return lines, categories
}

// place returns where on the axis of x the row belongs.
func (f Spec) place(row table.Row, categories *[]string) (x float64, ok bool) {
	if len(f.Across) == 0 {
		return row.Number(f.X)
	}
	name := f.Label(row, f.Across)
	i := slices.Index(*categories, name)
	if i < 0 {
		i = len(*categories)
		*categories = append(*categories, name)
	}
	return float64(i), true
}

// Label names what tells the row from others; numbers need their column's name.
func (f Spec) Label(row table.Row, columns []string) string {
	var names []string
	for _, c := range columns {
		name := row.Text(c)
		if name == "" {
			continue
		}
		if _, isNumber := row.Number(c); isNumber {
			name = c + ": " + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

const (
	figureWidth  = 7.2 * vg.Inch
	figureHeight = 4.2 * vg.Inch
	margin       = 0.15 * vg.Inch

	// leastPlotWidth is left to what is beside the legend, however wide that is.
	leastPlotWidth = 5.2 * vg.Inch
)

func (f Spec) draw(time string, rows []table.Row) ([]byte, error) {
	lines, categories := f.lines(rows)
	if len(lines) == 0 {
		return nil, fmt.Errorf("no row has %s to show", f.Y)
	}
	p := plot.New()
	words := wording{title: fmt.Sprintf("%s (%s time)", f.Title, time)}
	legend := plot.NewLegend()
	style(p, &legend)
	height := figureHeight
	add := f.addNumbered
	if len(f.Across) > 0 {
		height = acrossHeight(len(categories))
		add = func(p *plot.Plot, legend *plot.Legend, lines []line) error {
			return f.addAcross(p, legend, lines, categories)
		}
	}
	if err := add(p, &legend, lines); err != nil {
		return nil, err
	}
	names, err := f.addMarks(p, &legend, lines, categories)
	if err != nil {
		return nil, err
	}
	if note := f.note(); len(names) > 0 && note != "" {
		words.notes = append(words.notes, note)
	}
	if len(names) > 0 && f.others() {
		words.notes = append(words.notes, othersNote)
	}
	words.labels = f.labels(lines, len(names) > 0)
	for _, l := range lines {
		names = append(names, l.name)
	}
	if len(f.Across) > 0 {
		p.X.Max *= 1.05
	} else {
		p.Y.Max *= 1.05
	}
	return render(p, &legend, names, height, words)
}

// addNumbered draws lines or bars over an axis of numbers.
func (f Spec) addNumbered(p *plot.Plot, legend *plot.Legend, lines []line) error {
	p.X.Label.Text, p.Y.Label.Text = f.XLabel, f.YLabel
	p.Y.Min = 0
	p.Y.Tick.Marker = steps{}
	p.Add(gridAcross(false))
	add := f.addLines
	if f.Bars {
		add = f.addBars
	}
	return add(p, legend, lines)
}

// gridAcross returns a faint grid across the axis of the values.
func gridAcross(horizontalValues bool) *plotter.Grid {
	grid := plotter.NewGrid()
	hidden, shown := &grid.Vertical, &grid.Horizontal
	if horizontalValues {
		hidden, shown = shown, hidden
	}
	hidden.Width = 0
	shown.Color = color.Gray{Y: 0xdd}
	return grid
}

// wording is what stands around a figure.
type wording struct {
	title string
	notes []string
	// labels are the lines that are named where they end, if there is room. Without them there is a
	// legend.
	labels []line
}

const noteSize = 9.5

// render draws the title above all, the legend or the lines' labels to the plot's right, where they
// hide nothing, and the notes below.
func render(p *plot.Plot, legend *plot.Legend, names []string, height vg.Length, words wording) ([]byte, error) {
	width := vg.Length(0)
	for _, name := range names {
		width = max(width, legend.TextStyle.Width(name))
	}
	width += legend.ThumbnailWidth + 3*margin
	if words.labels != nil {
		width += 2 * margin // from the lines' ends to their labels
	}
	title, note := p.Title.TextStyle, legend.TextStyle
	title.XAlign, title.YAlign, note.XAlign, note.YAlign = draw.XLeft, draw.YTop, draw.XLeft, draw.YBottom
	note.Font.Size = vg.Points(noteSize)
	top, line := title.Height(words.title)+1.2*margin, 1.35*note.Height("x")
	bottom := vg.Length(len(words.notes)) * line
	if bottom > 0 {
		bottom += margin
	}
	total := max(figureWidth, leastPlotWidth+width+2*margin)
	svg := vgsvg.New(total, height+top+bottom)
	c := draw.New(svg)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if w := title.Width(words.title); w > c.Max.X-c.Min.X {
		title.Font.Size *= (c.Max.X - c.Min.X) / w
	}
	c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y}, words.title)
	for i, text := range words.notes {
		c.FillText(note, vg.Point{X: c.Min.X, Y: c.Min.Y + vg.Length(len(words.notes)-1-i)*line}, text)
	}
	inner := draw.Crop(c, 0, 0, bottom, -top)
	left := draw.Crop(inner, 0, -width, 0, 0)
	p.Draw(left)
	if words.labels == nil || !drawLabels(inner, p, p.DataCanvas(left), words.labels, legend.TextStyle) {
		legend.Draw(draw.Crop(inner, c.Max.X-c.Min.X-width+2*margin, 0, 0, 0))
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, err
	}
	// The font that the text is measured for, and those of the same measure.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}

// steps ticks at multiples of 1, 2 or 5 times a power of ten, four to nine of them.
type steps struct{}

func (steps) Ticks(lo, hi float64) []plot.Tick {
	rough := (hi - lo) / 5
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{5, 2} {
		if m*step <= rough {
			step *= m
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		// Rounding drops what binary fractions leave behind the last decimal.
		label := strconv.FormatFloat(math.Round(i*step*1e9)/1e9, 'f', -1, 64)
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

func style(p *plot.Plot, legend *plot.Legend) {
	sans := func(size float64, weight int) font.Font {
		f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
		if weight > 0 {
			f.Weight = 2 // bold, as gonum's collection registers it
		}
		return f
	}
	ink := color.Gray{Y: 0x33}
	p.Title.TextStyle.Font = sans(12, 1)
	p.Title.TextStyle.Color = ink
	p.Title.Padding = vg.Points(10)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sans(10.5, 0)
		a.Label.TextStyle.Color = ink
		a.Label.Padding = vg.Points(4)
		a.Tick.Label.Font = sans(9.5, 0)
		a.Tick.Label.Color = ink
		a.LineStyle.Color = ink
		a.Tick.LineStyle.Color = ink
		a.Padding = vg.Points(3)
	}
	legend.TextStyle.Font = sans(10, 0)
	legend.TextStyle.Color = ink
	legend.Top, legend.Left = true, true
	legend.Padding = vg.Points(4)
	legend.ThumbnailWidth = vg.Points(24)
}

func (f Spec) addLines(p *plot.Plot, legend *plot.Legend, lines []line) error {
	var ticks []plot.Tick
	style := looks(lines)
	for i, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width, drawn.Dashes = style[i].hue.color(), style[i].width, style[i].dashes
		points.GlyphStyle = draw.GlyphStyle{Color: style[i].hue.color(), Shape: style[i].glyph, Radius: vg.Points(3)}
		if len(l.points) > 12 { // a curve: some marks tell it from others
			points.XYs = nil
			for k := i % 4; k < len(l.points); k += 4 {
				points.XYs = append(points.XYs, l.points[k])
			}
		}
		if style[i].glyph == nil {
			points.Shape, points.Radius = draw.CircleGlyph{}, 0
		}
		p.Add(drawn, points)
		legend.Add(l.name, drawn, points)
		for _, xy := range l.points {
			if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == xy.X }) {
				ticks = append(ticks, plot.Tick{Value: xy.X, Label: strconv.FormatFloat(xy.X, 'f', -1, 64)})
			}
		}
	}
	if p.X.Tick.Marker = plot.ConstantTicks(ticks); f.Scattered {
		p.X.Tick.Marker = steps{}
	}
	return nil
}

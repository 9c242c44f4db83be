package figure

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a series is drawn: alike in all figures, and told apart by its mark and its dashes
// where colours are not.
type look struct {
	hue    hue
	glyph  draw.GlyphDrawer
	dashes []vg.Length
	width  vg.Length
}

// hue is a colour of Okabe and Ito's, which colour-blind readers tell apart, with a yellow that is
// seen on white.
type hue uint8

const (
	blue hue = iota
	orange
	green
	vermilion
	purple
	sky
	yellow
	black
	hues // from which series take theirs that are no systems
	grey = hues
)

func (h hue) color() color.RGBA {
	return [...]color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xd5, 0x5e, 0x00, 0xff},
		{0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff}, {0xb8, 0xa8, 0x00, 0xff}, {0x00, 0x00, 0x00, 0xff}, {0x77, 0x77, 0x77, 0xff},
	}[h]
}

// lookOf returns how a system, or another thing that figures compare, looks in all of them.
func lookOf(name string) (look, bool) {
	long, short, dots := []vg.Length{vg.Points(9), vg.Points(3)}, []vg.Length{vg.Points(4), vg.Points(2.5)},
		[]vg.Length{vg.Points(1.5), vg.Points(2.5)}
	broken := []vg.Length{vg.Points(8), vg.Points(2), vg.Points(1.5), vg.Points(2)}
	wide, narrow := vg.Points(2.6), vg.Points(1.5)
	switch name {
	case "floor":
		return look{grey, nil, dots, narrow}, true

	case "raft":
		return look{black, draw.SquareGlyph{}, nil, vg.Points(4)}, true
	case "multipaxos":
		return look{vermilion, draw.CrossGlyph{}, short, wide}, true
	case "fastpaxos":
		return look{yellow, draw.PlusGlyph{}, short, vg.Points(1.2)}, true
	case "mencius":
		return look{green, diamond{}, nil, narrow}, true
	case "epaxos":
		return look{purple, draw.PyramidGlyph{}, broken, narrow}, true
	case "domino":
		return look{blue, draw.BoxGlyph{}, short, wide}, true
	case "domino-direct":
		return look{orange, draw.CircleGlyph{}, nil, wide}, true
	case "etcd":
		return look{sky, downward{}, long, narrow}, true

	// Plain gRPC, and Foresay without guesses, which often coincide.
	case "grpc":
		return look{grey, draw.SquareGlyph{}, nil, wide}, true
	case "grpc-stream":
		return look{grey, downward{}, long, narrow}, true
	case "off", "foresay-off":
		return look{black, draw.CrossGlyph{}, short, narrow}, true
	case "foresay-do", "spec":
		return look{blue, draw.CircleGlyph{}, nil, wide}, true
	case "foresay-then", "predicated":
		return look{orange, diamond{}, short, narrow}, true
	case "auto":
		return look{green, draw.PyramidGlyph{}, broken, narrow}, true

	case "durable":
		return look{blue, draw.CircleGlyph{}, nil, wide}, true
	case "executed":
		return look{vermilion, draw.BoxGlyph{}, short, narrow}, true
	}
	return look{}, false
}

// looks returns how the lines of one figure look. One that is no system, such as a number of
// callers, gets a colour that no other of them has; a second one of the same system gets other
// dashes.
func looks(lines []line) []look {
	out := make([]look, len(lines))
	taken := make(map[hue]int)
	for i, l := range lines {
		name, _, _ := strings.Cut(l.name, ", ")
		known := false
		if out[i], known = lookOf(name); !known {
			continue
		}
		if n := taken[out[i].hue]; n > 0 {
			out[i].dashes = []vg.Length{vg.Points(float64(3 * n)), vg.Points(2)}
			out[i].glyph = glyph(i)
		}
		taken[out[i].hue]++
	}
	next := 0
	for i := range out {
		if out[i].width > 0 {
			continue
		}
		for taken[hue(next)%hues] > 0 && next < int(hues) {
			next++
		}
		out[i] = look{hue(next) % hues, glyph(next), nil, vg.Points(1.8)}
		if next%2 == 1 {
			out[i].dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		taken[out[i].hue]++
		next++
	}
	return out
}

func glyph(i int) draw.GlyphDrawer {
	return []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, diamond{}, draw.PyramidGlyph{}, draw.CrossGlyph{},
		draw.SquareGlyph{}, draw.PlusGlyph{}, downward{}}[i%8]
}

// diamond is a square that stands on a corner.
type diamond struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	corners(c, sty, at, [][2]float64{{0, 1.25}, {1.25, 0}, {0, -1.25}, {-1.25, 0}})
}

// downward is a full triangle that points down.
type downward struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (downward) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	corners(c, sty, at, [][2]float64{{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}})
}

func corners(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point, places [][2]float64) {
	c.SetColor(sty.Color)
	var p vg.Path
	for i, xy := range places {
		to := vg.Point{X: at.X + sty.Radius*vg.Length(xy[0]), Y: at.Y + sty.Radius*vg.Length(xy[1])}
		if i == 0 {
			p.Move(to)
		} else {
			p.Line(to)
		}
	}
	p.Close()
	c.Fill(p)
}

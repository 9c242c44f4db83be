package planning

import (
	"bytes"
	"fmt"
	"time"
)

// A Picture is an SVG of latencies on an axis of milliseconds.
type Picture struct {
	Title     string
	TitleSize int
	Legend    []string // lines of SVG
	Width     int
	Left      float64 // of the axis
	Right     int
	Top       int // of the first row
	Bottom    int // of the last one
	Longest   time.Duration

	out bytes.Buffer
	end time.Duration // of the axis
}

// Begin draws the frame, the title, the legend and the axis.
func (p *Picture) Begin() {
	step := axisStep(p.Longest)
	p.end = (p.Longest/step + 1) * step
	p.Add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" `+
		`font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="#24292f">`,
		p.Width, p.Bottom+40, p.Width, p.Bottom+40)
	title := Escaped(p.Title)
	p.Add(`<title>%s</title>`, title)
	p.Add(`<rect x="0.5" y="0.5" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>`, p.Width-1, p.Bottom+39)
	p.Add(`<text x="16" y="28" font-size="%d" font-weight="bold">%s</text>`, p.TitleSize, title)
	for _, l := range p.Legend {
		p.Add("%s", l)
	}
	for t := time.Duration(0); t <= p.end; t += step {
		p.Add(`<path d="M%.1f %dV%d" stroke="#eaeef2"/><text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>`,
			p.X(t), p.Top-6, p.Bottom+4, p.X(t), p.Bottom+22, Millis(t))
	}
}

// X returns where on the axis a latency is.
func (p *Picture) X(d time.Duration) float64 {
	return p.Left + float64(d)/float64(p.end)*(float64(p.Right)-p.Left)
}

// Add draws a line of SVG.
func (p *Picture) Add(format string, args ...any) {
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// End returns the picture as a file.
func (p *Picture) End() []byte {
	p.Add("</svg>")
	return p.out.Bytes()
}

package traceanalysis

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// The picture's measures, in SVG's units.
const (
	svgWidth  = 1000
	svgLeft   = 280 // of the time axis
	svgRight  = 970
	svgMargin = 16
	svgRow    = 22
	svgRows   = 100 // calls shown
	svgGlyph  = 0.625
)

// picture is a drawing in progress.
type picture struct {
	*Timeline
	out bytes.Buffer
	y   float64
}

// WriteSVG draws the entry's timeline as a self-contained picture: a typical request as it was, and
// below it, on the same axis, as it would have been with every read predicted rightly.
func (e *Entry) WriteSVG(w io.Writer) error {
	p := &picture{Timeline: e.Timeline}
	bars, cut := p.Bars, 0
	if len(bars) > svgRows {
		bars, cut = bars[:svgRows], len(bars)-svgRows
	}
	height := 136 + 2*svgRow*(len(bars)+1)
	if cut > 0 {
		height += 20
	}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" `+
		`font-family="ui-monospace,Menlo,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="12" fill="#24292f">`,
		svgWidth, height, svgWidth, height)
	heading := fmt.Sprintf("%s: %s: %.1f ms, with every read predicted rightly %.1f ms", e.Service, e.Method, p.BeforeMS,
		p.AfterMS)
	p.add(`<title>%s</title>`, escape(heading))
	p.add(`<rect x="0.5" y="0.5" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>`, svgWidth-1, height-1)
	p.text(svgMargin, 30, svgWidth-2*svgMargin, 14, `font-weight="bold"`, heading)
	p.axis(float64(86 + 2*svgRow*(len(bars)+1)))
	p.y = 72
	p.panel("as it was", p.BeforeMS, bars, func(b Bar) (from, to float64, fill string) {
		if b.Critical {
			return b.From, b.To, "#3d7fc4"
		}
		return b.From, b.To, "#a8cdf0"
	})
	p.y += 14
	p.panel("predicted", p.AfterMS, bars, func(b Bar) (from, to float64, fill string) {
		switch {
		case b.AfterFrom < b.From && b.Predicted:
			return b.AfterFrom, b.AfterTo, "#8250df"
		case b.Critical:
			return b.AfterFrom, b.AfterTo, "#3d7fc4"
		}
		return b.AfterFrom, b.AfterTo, "#a8cdf0"
	})
	p.legend(cut)
	p.add("</svg>")
	_, err := w.Write(p.out.Bytes())
	return err
}

func (p *picture) add(format string, args ...any) {
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// text writes s, cut to what fits in width units.
func (p *picture) text(x, y, width, size float64, attributes, s string) {
	if n := int(width / (size * svgGlyph)); utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:max(n-2, 0)]) + ".."
	}
	p.add(`<text x="%.1f" y="%.1f" font-size="%g" %s>%s</text>`, x, y, size, attributes, escape(s))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(printable(s))) // a strings.Builder never fails
	return b.String()
}

func (p *picture) x(ms float64) float64 {
	if p.BeforeMS <= 0 {
		return svgLeft
	}
	return svgLeft + min(max(ms/p.BeforeMS, 0), 1)*(svgRight-svgLeft)
}

// axis draws lines at some five round numbers of milliseconds.
func (p *picture) axis(bottom float64) {
	p.text(svgMargin, 56, 200, 11, `fill="#57606a"`, "time in ms")
	step := math.Pow(10, math.Floor(math.Log10(max(p.BeforeMS, 1e-6)/2)))
	for p.BeforeMS/step > 8 {
		step *= 2
	}
	for i := range 9 {
		ms := float64(i) * step
		if ms > p.BeforeMS {
			break
		}
		p.add(`<line x1="%.1f" y1="62" x2="%.1f" y2="%.1f" stroke="#d8dee4"/>`, p.x(ms), p.x(ms), bottom)
		p.text(p.x(ms), 56, 80, 11, `text-anchor="middle" fill="#57606a"`, fmt.Sprintf("%g", ms))
	}
}

// panel draws one way in which the request went.
func (p *picture) panel(what string, took float64, bars []Bar, look func(Bar) (from, to float64, fill string)) {
	row := func(label, weight string, from, to float64, fill, title string, thick float64) {
		p.add(`<g><title>%s</title>`, escape(title))
		p.text(svgMargin, p.y+15, svgLeft-svgMargin-8, 12, weight, label)
		p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%g" fill="%s"/></g>`,
			p.x(from), p.y+11-thick/2, max(p.x(to)-p.x(from), 1), thick, fill)
		p.y += svgRow
	}
	row(fmt.Sprintf("%s: %.1f ms", what, took), `font-weight="bold"`, 0, took, "#57606a",
		fmt.Sprintf("the request %s: %.3f ms", what, took), 5)
	for _, b := range bars {
		from, to, fill := look(b)
		title := fmt.Sprintf("%s: %.3f to %.3f ms", b.Method, from, to)
		if !b.Predicted {
			title += "; has effects: sent when all before it is certain"
		}
		row("  "+b.Method, "", from, to, fill, title, 13)
	}
}

func (p *picture) legend(cut int) {
	x, y := float64(svgMargin), p.y+30
	for _, entry := range []struct{ fill, what string }{
		{"#57606a", "the request"}, {"#3d7fc4", "call on the critical path, as it was"}, {"#a8cdf0", "call beside it"},
		{"#8250df", "call begun early"},
	} {
		p.add(`<rect x="%.1f" y="%.1f" width="20" height="10" fill="%s"/>`, x, y-9, entry.fill)
		p.text(x+26, y, svgWidth, 11, `fill="#57606a"`, entry.what)
		x += 46 + float64(len(entry.what))*11*svgGlyph
	}
	if cut > 0 {
		p.text(svgMargin, y+20, svgWidth, 11, `fill="#c4401c"`, plural(cut, "more call")+" not shown")
	}
}

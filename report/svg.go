package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// The picture's measures, in SVG's units.
const (
	svgWidth  = 1000
	svgLeft   = 216 // of the time axis
	svgRight  = 756
	svgMargin = 16
	svgTop    = 92 // of the first row
	svgRow    = 24
	// svgGlyph is a bound on a character's width, in units of the font size. The
	// fonts asked for are monospaced, about 0.6 wide.
	svgGlyph = 0.625
)

// WriteSVG draws the report as a self-contained picture: a time axis in
// milliseconds, a lane per run, and below it a bar per call that the run was the
// first to make. Arrows lead from a prediction or an answer to the run that went
// on with it. A report of more than 200 runs and calls is cut off there.
func (r *Report) WriteSVG(w io.Writer) error {
	p := &picture{view: newView(r)}
	p.hidden = p.cut(maxTimelineRows)
	p.place()
	p.open()
	p.axis()
	for _, g := range p.groups {
		if g.run != nil {
			p.run(g.run)
		}
		for _, c := range g.calls {
			p.call(c)
		}
	}
	for _, g := range p.groups {
		if g.run != nil {
			p.arrows(g.run)
		}
	}
	p.legend()
	p.out.WriteString("</svg>\n")
	_, err := w.Write(p.out.Bytes())
	return err
}

// picture is a drawing in progress.
type picture struct {
	*view
	out    bytes.Buffer
	hidden int
	runY   map[*Run]float64 // the middles of the rows
	callY  map[int]float64  // by ID
	bottom float64          // of the rows
}

// place gives each row its height.
func (p *picture) place() {
	p.runY, p.callY = make(map[*Run]float64), make(map[int]float64)
	y := float64(svgTop)
	for i, g := range p.groups {
		if i > 0 {
			y += 6
		}
		if g.run != nil {
			p.runY[g.run.Run] = y + svgRow/2
			y += svgRow
		}
		for _, c := range g.calls {
			if p.calls[c.ID] == c {
				p.callY[c.ID] = y + svgRow/2
			}
			y += svgRow
		}
	}
	p.bottom = y + 4
}

func (p *picture) open() {
	height := p.bottom + 62
	if p.hidden > 0 {
		height += 18
	}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img" `+
		`font-family="ui-monospace,Menlo,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="12" fill="#24292f">`,
		svgWidth, height, svgWidth, height)
	p.add(`<title>%s</title>`, escape(p.heading()))
	p.out.WriteString(svgDefinitions)
	p.add(`<rect x="0.5" y="0.5" width="%d" height="%.0f" rx="6" fill="#ffffff" stroke="#d0d7de"/>`, svgWidth-1, height-1)
	p.text(svgMargin, 30, svgWidth-2*svgMargin, 16, `font-weight="bold"`, p.heading())
	color, subtitle := "#57606a", "lines: runs of the task's function; bars: calls, from when they were made until "+
		"they were answered"
	if p.report.Outcome != "confirmed" {
		color, subtitle = "#c4401c", clean(p.report.Outcome)
	}
	p.text(svgMargin, 50, svgWidth-2*svgMargin, 12, `fill="`+color+`"`, subtitle)
}

const svgDefinitions = `<defs>
<pattern id="held" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f6f8fa"/><rect width="2.5" height="6" fill="#8c959f"/></pattern>
<marker id="took" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#8250df"/></marker>
<marker id="had" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#57606a"/></marker>
</defs>
`

func (p *picture) add(format string, args ...any) {
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// text writes s, cut to what fits in width units.
func (p *picture) text(x, y, width, size float64, attributes, s string) {
	p.add(`<text x="%.1f" y="%.1f" font-size="%g" %s>%s</text>`, x, y, size, attributes,
		escape(cutTo(s, width/(size*svgGlyph))))
}

// label writes a call's label, in smaller letters if it is long, and rather without the middle than
// without its end: the methods of a service often begin alike.
func (p *picture) label(x, y, width float64, s string) {
	size := 12.0
	for size > 9.5 && cutTo(s, width/(size*svgGlyph)) != s {
		size -= 0.5
	}
	if room := width / (size * svgGlyph); cutTo(s, room) != s {
		head := s[:strings.IndexByte(s, ' ')+1] // the call's number
		s = head + ".." + endOf(s[len(head):], room-float64(len(head))-2)
	}
	p.text(x, y, width, size, "", s)
}

// glyphs is how many characters' room one takes. Those beyond Latin script may be twice as wide.
func glyphs(r rune) float64 {
	if r >= 0x250 {
		return 2
	}
	return 1
}

// endOf returns the end of s that fits in the room of n characters.
func endOf(s string, n float64) string {
	runes := []rune(s)
	at := len(runes)
	for at > 0 && n >= glyphs(runes[at-1]) {
		at--
		n -= glyphs(runes[at])
	}
	return string(runes[at:])
}

// cutTo cuts s to the room of n characters.
func cutTo(s string, n float64) string {
	total := 0.0
	for _, r := range s {
		total += glyphs(r)
	}
	if total <= n {
		return s
	}
	total = 2
	for i, r := range s {
		if total += glyphs(r); total > n {
			return s[:i] + ".."
		}
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never fails
	return b.String()
}

func (p *picture) x(t time.Duration) float64 {
	return svgLeft + p.fraction(t)*(svgRight-svgLeft)
}

func (p *picture) axis() {
	p.text(svgMargin, svgTop-14, 100, 11, `fill="#57606a"`, "time in ms")
	for _, t := range p.ticks(8) {
		x := p.x(t)
		p.add(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%.1f" stroke="#d8dee4"/>`, x, svgTop-8, x, p.bottom)
		p.text(x, svgTop-14, 70, 11, `text-anchor="middle" fill="#57606a"`, millis(t))
	}
}

func (p *picture) run(r *runView) {
	y := p.runY[r.Run]
	p.add(`<g><title>%s</title>`, escape(r.label()+": "+r.note()))
	p.add(`<rect x="8" y="%.1f" width="%d" height="%d" rx="3" fill="#57606a" fill-opacity="0.08"/>`, y-svgRow/2+1,
		svgWidth-16, svgRow-2)
	p.text(svgMargin, y+4, svgLeft-svgMargin-16, 12, `font-weight="bold"`, r.label())
	for _, s := range r.spans {
		x, width := p.x(s.from), p.x(s.to)-p.x(s.from)
		switch s.phase {
		case phaseReturned:
			p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3" stroke-dasharray="2 4"/>`,
				x, y, x+width, y, r.verdict.color())
		case phaseWaiting:
			p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="3" fill="%s"/>`, x, y-1.5, width, r.verdict.color())
		default:
			p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="9" fill="%s"/>`, x, y-4.5, width, r.verdict.color())
		}
	}
	p.mark(p.x(r.to), y, r.verdict)
	p.text(svgRight+14, y+4, svgWidth-svgRight-14-svgMargin, 12, `fill="`+r.verdict.color()+`"`, r.note())
	p.add(`</g>`)
}

func (p *picture) call(c *callView) {
	y, ok := p.callY[c.ID]
	if !ok || p.calls[c.ID] != c {
		return
	}
	p.add(`<g><title>%s</title>`, escape(c.label()+": "+c.note()+c.holds()))
	p.label(svgMargin+14, y+4, svgLeft-svgMargin-30, c.label())
	for _, s := range c.spans {
		p.bar(p.x(s.from), p.x(s.to), y, s.phase)
	}
	if c.Confirmed > c.to {
		p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#8c959f" stroke-dasharray="1 3"/>`, p.x(c.to), y,
			p.x(c.Confirmed), y)
	}
	for _, at := range c.Predicted {
		if at >= 0 {
			p.diamond(p.x(at), y)
		}
	}
	p.mark(p.x(c.to), y, c.verdict)
	p.text(svgRight+14, y+4, svgWidth-svgRight-14-svgMargin, 12, `fill="`+c.verdict.color()+`"`, c.note())
	p.add(`</g>`)
}

func (c *callView) holds() string {
	s := ""
	for _, h := range c.Held {
		s += "; held at " + millis(h.At) + " ms: " + clean(h.Reason)
	}
	return s
}

// bar draws a phase of a call.
func (p *picture) bar(from, to, y float64, ph phase) {
	fill, height := "url(#held)", 12.0
	switch ph {
	case phaseSpeculative:
		fill = "#a8cdf0"
	case phaseFirm:
		fill = "#3d7fc4"
	case phaseComputing:
		fill, height = "#57606a", 9
	}
	p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%g" fill="%s"/>`, from, y-height/2, to-from, height, fill)
}

// diamond marks the arrival of a prediction.
func (p *picture) diamond(x, y float64) {
	p.add(`<path d="M%.1f %.1fl4.5 6l-4.5 6l-4.5 -6z" fill="#8250df" stroke="#ffffff"/>`, x, y-6)
}

// mark draws a verdict.
func (p *picture) mark(x, y float64, v verdict) {
	switch v {
	case verdictRight, verdictConfirmed:
		p.badge(x, y, v, "M-2.6 0.2L-0.8 2.2L2.8 -2.2")
	case verdictWrong, verdictDiscarded, verdictFailed:
		p.badge(x, y, v, "M-2.2 -2.2L2.2 2.2M2.2 -2.2L-2.2 2.2")
	case verdictAbandoned:
		p.badge(x, y, v, "M-2.6 0H2.6")
	case verdictAnswered:
		p.add(`<rect x="%.1f" y="%.1f" width="3" height="16" fill="%s"/>`, x-1.5, y-8, v.color())
	default:
		p.add(`<circle cx="%.1f" cy="%.1f" r="4.5" fill="#ffffff" stroke="%s" stroke-width="1.5"/>`, x, y, v.color())
	}
}

func (p *picture) badge(x, y float64, v verdict, path string) {
	p.add(`<g transform="translate(%.1f %.1f)"><circle r="5.5" fill="%s" stroke="#ffffff"/><path d="%s" fill="none" stroke="#ffffff" stroke-width="1.6"/></g>`,
		x, y, v.color(), path)
}

// arrows shows on what the run went on, and when. What it found in the task's
// record needs no arrow.
func (p *picture) arrows(r *runView) {
	y := p.runY[r.Run]
	for _, s := range r.Steps {
		from, ok := p.callY[s.Call]
		if !ok || s.Prediction < -1 || s.Resumed < 0 || s.Resumed > p.calls[s.Call].to {
			continue // no answer, or one from the record
		}
		color, marker := "#57606a", "had"
		if s.Prediction >= 0 {
			color, marker = "#8250df", "took"
		}
		dash := ""
		if s.Adopted {
			dash = ` stroke-dasharray="3 3"`
		}
		end, start := y+6, from-6
		if from < y {
			end, start = y-6, from+6
		}
		x := p.x(s.Resumed)
		p.add(`<path d="M%.1f %.1fV%.1f" fill="none" stroke="%s" stroke-opacity="0.75"%s marker-end="url(#%s)"/>`, x, start,
			end, color, dash, marker)
	}
}

// legend explains the signs, and says what was cut off.
func (p *picture) legend() {
	x, y := float64(svgMargin), p.bottom+22
	const size = 11
	entry := func(what string, width float64, draw func(x, y float64)) {
		need := width + 6 + float64(utf8.RuneCountInString(what))*size*svgGlyph
		if x+need > svgWidth-svgMargin {
			x, y = svgMargin, y+20
		}
		draw(x, y)
		p.text(x+width+6, y+4, svgWidth, size, `fill="#57606a"`, what)
		x += need + 16
	}
	bars := func(ph phase) func(x, y float64) {
		return func(x, y float64) { p.bar(x, x+20, y, ph) }
	}
	marks := func(v verdict) func(x, y float64) {
		return func(x, y float64) { p.mark(x+6, y, v) }
	}
	arrow := func(color, marker string) func(x, y float64) {
		return func(x, y float64) {
			p.add(`<path d="M%.1f %.1fh18" stroke="%s" marker-end="url(#%s)"/>`, x, y, color, marker)
		}
	}
	entry("held", 20, bars(phaseHeld))
	entry("sent on a guess", 20, bars(phaseSpeculative))
	entry("sent for sure", 20, bars(phaseFirm))
	entry("prediction arrives", 10, func(x, y float64) { p.diamond(x+5, y) })
	entry("run goes on with it", 20, arrow("#8250df", "took"))
	entry("with an answer", 20, arrow("#57606a", "had"))
	entry("right, confirmed", 12, marks(verdictRight))
	entry("wrong, failed, discarded", 12, marks(verdictWrong))
	entry("answered", 12, marks(verdictAnswered))
	entry("abandoned", 12, marks(verdictAbandoned))
	entry("computing", 20, func(x, y float64) {
		p.add(`<rect x="%.1f" y="%.1f" width="20" height="9" fill="#57606a"/>`, x, y-4.5)
	})
	entry("waiting", 20, func(x, y float64) {
		p.add(`<rect x="%.1f" y="%.1f" width="20" height="3" fill="#57606a"/>`, x, y-1.5)
	})
	entry("returned on a guess", 20, func(x, y float64) {
		p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#57606a" stroke-width="3" stroke-dasharray="2 4"/>`, x,
			y, x+20, y)
	})
	entry("caller unconfirmed", 20, func(x, y float64) {
		p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#8c959f" stroke-dasharray="1 3"/>`, x, y, x+20, y)
	})
	if p.hidden > 0 {
		p.text(svgMargin, y+24, svgWidth-2*svgMargin, size, `fill="#c4401c"`, count(p.hidden, "more line")+" not shown")
	}
}

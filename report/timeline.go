package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Timeline draws reports as text. The zero value draws with Unicode's blocks
// and marks for a terminal of 100 columns.
type Timeline struct {
	// Width is how many columns the timeline takes. 0 means 100; the least is 40.
	Width int
	// ASCII draws with ASCII only; what else names contain becomes a question mark.
	ASCII bool
	// NoLegend leaves the legend out.
	NoLegend bool
}

// maxTimelineRows bounds the lines of a timeline and the height of a picture.
const maxTimelineRows = 200

// WriteTimeline draws the report in Unicode, width columns wide. See Timeline.
func (r *Report) WriteTimeline(w io.Writer, width int) error {
	return Timeline{Width: width}.Write(w, r)
}

// Write draws the report as bars on a common time axis: a line per run, and
// below it a line per call that the run was the first to make, from when it was
// made until it was answered. A report of more than 200 lines is cut off there.
func (o Timeline) Write(w io.Writer, r *Report) error {
	d := &timeline{view: newView(r), signs: unicodeSigns(), width: max(40, cmp.Or(max(o.Width, 0), 100))}
	if o.ASCII {
		d.signs = asciiSigns()
	}
	d.line(fitTo(d.heading(), d.width))
	d.layout()
	d.axis()
	hidden := d.cut(maxTimelineRows)
	for _, g := range d.groups {
		if g.run != nil {
			d.row(g.run.label(), g.run.note(), g.run.spans, nil, g.run.to, g.run.verdict)
		}
		for _, c := range g.calls {
			d.row("  "+c.label(), c.note(), c.spans, c.Predicted, c.to, c.verdict)
		}
	}
	if hidden > 0 {
		fmt.Fprintf(&d.out, "%s not shown\n", count(hidden, "more line"))
	}
	if !o.NoLegend {
		d.legend()
	}
	out := d.out.Bytes()
	if o.ASCII {
		out = ascii(out)
	}
	_, err := w.Write(out)
	return err
}

// timeline is a drawing in progress.
type timeline struct {
	*view
	signs signs
	width int
	out   bytes.Buffer
	// The widths of the columns: label, space, bars, space, note.
	label, bars, note int
}

// signs are the characters of a timeline.
type signs struct {
	phase      [phaseReturned + 1]rune
	verdict    [verdictDiscarded + 1]rune
	prediction rune
	axis       rune
	tick       rune
}

func unicodeSigns() signs {
	return signs{
		phase: [...]rune{
			phaseHeld: '░', phaseSpeculative: '▒', phaseFirm: '█',
			phaseComputing: '━', phaseWaiting: '─', phaseReturned: '┄',
		},
		verdict: [...]rune{
			verdictUnsettled: '?', verdictAnswered: '│', verdictFailed: '!', verdictRight: '✓',
			verdictWrong: '✗', verdictAbandoned: '×', verdictConfirmed: '✓', verdictDiscarded: '✗',
		},
		prediction: '◆', axis: '─', tick: '┬',
	}
}

func asciiSigns() signs {
	return signs{
		phase: [...]rune{
			phaseHeld: '.', phaseSpeculative: '~', phaseFirm: '#',
			phaseComputing: '=', phaseWaiting: '-', phaseReturned: ':',
		},
		verdict: [...]rune{
			verdictUnsettled: '?', verdictAnswered: '|', verdictFailed: '!', verdictRight: '+',
			verdictWrong: 'x', verdictAbandoned: '/', verdictConfirmed: '+', verdictDiscarded: 'x',
		},
		prediction: 'p', axis: '-', tick: '+',
	}
}

// layout divides the width by what the labels and notes need.
func (d *timeline) layout() {
	see := func(label, note string) {
		d.label = max(d.label, utf8.RuneCountInString(label))
		d.note = max(d.note, utf8.RuneCountInString(note))
	}
	for _, g := range d.groups {
		if g.run != nil {
			see(g.run.label(), g.run.note())
		}
		for _, c := range g.calls {
			see("  "+c.label(), c.note())
		}
	}
	d.label = min(max(d.label, 8), 28, d.width/3)
	d.note = min(d.note, 32, d.width/3)
	d.bars = d.width - d.label - d.note - 2
	if d.bars < 20 {
		d.note = 0
		d.bars = d.width - d.label - 2
	}
}

// column returns where t is drawn.
func (d *timeline) column(t time.Duration) int { return int(d.fraction(t)*float64(d.bars-1) + 0.5) }

// axis writes the times above their ticks.
func (d *timeline) axis() {
	numbers := []rune(strings.Repeat(" ", d.bars+min(8, d.note)))
	line := []rune(strings.Repeat(string(d.signs.axis), d.bars))
	free := 0
	for _, t := range d.ticks(d.bars / 8) {
		at := d.column(t)
		line[at] = d.signs.tick
		text := []rune(millis(t))
		if at >= free && at+len(text) <= len(numbers) {
			copy(numbers[at:], text)
			free = at + len(text) + 1
		}
	}
	d.line(fit("ms", d.label) + " " + string(numbers))
	d.line(fit("", d.label) + " " + string(line))
}

func (d *timeline) line(s string) {
	d.out.WriteString(strings.TrimRight(s, " ") + "\n")
}

// row writes a line with a bar. The last character of a bar is its verdict.
func (d *timeline) row(label, note string, spans []span, marks []time.Duration, to time.Duration, v verdict) {
	bar := []rune(strings.Repeat(" ", d.bars))
	for _, s := range spans {
		for i := d.column(s.from); i <= d.column(s.to); i++ {
			bar[i] = d.signs.phase[s.phase]
		}
	}
	for _, t := range marks {
		if t >= 0 && t <= to {
			bar[d.column(t)] = d.signs.prediction
		}
	}
	bar[d.column(to)] = d.signs.verdict[v]
	d.line(fit(label, d.label) + " " + string(bar) + " " + fit(note, d.note))
}

func (d *timeline) legend() {
	s := &d.signs
	entry := func(sign rune, what string) string { return string(sign) + " " + what }
	verdict := func(v verdict) string { return entry(s.verdict[v], v.String()) }
	wrapTo(&d.out, d.width, "calls ", []string{
		entry(s.phase[phaseHeld], "held"),
		entry(s.phase[phaseSpeculative], "sent on a guess"),
		entry(s.phase[phaseFirm], "sent for sure"),
		entry(s.prediction, "prediction arrives"),
		verdict(verdictAnswered), verdict(verdictRight), verdict(verdictWrong),
		verdict(verdictFailed), verdict(verdictAbandoned),
	}, "  ")
	wrapTo(&d.out, d.width, "runs  ", []string{
		entry(s.phase[phaseComputing], "computing"),
		entry(s.phase[phaseWaiting], "waiting for an answer"),
		entry(s.phase[phaseReturned], "returned on a guess"),
		verdict(verdictConfirmed), verdict(verdictDiscarded), entry(s.verdict[verdictUnsettled], "open"),
	}, "  ")
}

// ascii replaces what is not ASCII.
func ascii(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, b)
}

package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
)

// Progress tells how far a long command is: with a bar that is drawn over itself on
// a terminal, with a line for each tenth elsewhere.
type Progress struct {
	w        io.Writer
	Terminal bool
	tenth    int // how many lines have been written
}

// NewProgress returns one that writes to w.
func NewProgress(w io.Writer) *Progress { return &Progress{w: w, Terminal: IsTerminal(w)} }

const (
	barWidth     = 24
	columns      = 79 // of a terminal, as far as is known
	ClearedToEnd = "\x1b[K"
)

// Report shows how far the command is.
func (p *Progress) Report(b bench.Progress) {
	if p.Terminal {
		full := barWidth * b.Done / max(b.Total, 1)
		line := fmt.Sprintf("%s  %s%s  %d/%d  %s", b.Experiment,
			strings.Repeat("█", full), strings.Repeat("░", barWidth-full), b.Done, b.Total, b.Doing)
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns-1]) + "…"
		}
		fmt.Fprint(p.w, "\r", line, ClearedToEnd)
		return
	}
	if tenth := 10*b.Done/max(b.Total, 1) + 1; tenth > p.tenth {
		p.tenth = tenth
		fmt.Fprintf(p.w, "%s: %d of %d done, now %s\n", b.Experiment, b.Done, b.Total, b.Doing)
	}
}

// Note tells what a command waits for whose end nobody knows: over the last note on a terminal, in
// a line of its own elsewhere.
func (p *Progress) Note(text string) {
	if !p.Terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	if r := []rune(text); len(r) > columns {
		text = string(r[:columns-1]) + "…"
	}
	fmt.Fprint(p.w, "\r", text, ClearedToEnd)
}

// Clear removes the bar.
func (p *Progress) Clear() {
	if p.Terminal {
		fmt.Fprint(p.w, "\r", ClearedToEnd)
	}
}

// StatusPause is the time between two looks of a command that waits.
const StatusPause = 100 * time.Millisecond

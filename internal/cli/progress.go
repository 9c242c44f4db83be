package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
)

// progress tells how far a long command is: with a bar that is drawn over itself on
// a terminal, with a line for each tenth elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	tenth    int // how many lines have been written
}

func newProgress(w io.Writer) *progress { return &progress{w: w, terminal: isTerminal(w)} }

const (
	barWidth     = 24
	columns      = 79 // of a terminal, as far as is known
	clearedToEnd = "\x1b[K"
)

func (p *progress) report(b bench.Progress) {
	if p.terminal {
		full := barWidth * b.Done / max(b.Total, 1)
		line := fmt.Sprintf("%s  %s%s  %d/%d  %s", b.Experiment,
			strings.Repeat("█", full), strings.Repeat("░", barWidth-full), b.Done, b.Total, b.Doing)
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns-1]) + "…"
		}
		fmt.Fprint(p.w, "\r", line, clearedToEnd)
		return
	}
	if tenth := 10*b.Done/max(b.Total, 1) + 1; tenth > p.tenth {
		p.tenth = tenth
		fmt.Fprintf(p.w, "%s: %d of %d done, now %s\n", b.Experiment, b.Done, b.Total, b.Doing)
	}
}

// note tells what a command waits for whose end nobody knows: over the last note on a terminal, in a line of its own elsewhere.
func (p *progress) note(text string) {
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	if r := []rune(text); len(r) > columns {
		text = string(r[:columns-1]) + "…"
	}
	fmt.Fprint(p.w, "\r", text, clearedToEnd)
}

// clear removes the bar.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r", clearedToEnd)
	}
}

// statusPause is the time between two looks of a command that waits.
const statusPause = 100 * time.Millisecond

package storecmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/foresay/foresay/internal/cli/command"
)

// timelineWidth is how many columns a timeline has.
const timelineWidth = 40

// write writes the explanation for people.
func (x *explanation) write(w io.Writer) {
	for _, a := range x.Attempts {
		x.writeAttempt(w, a)
	}
	hops := 0
	for _, a := range x.Attempts {
		for _, h := range a.Path {
			if h.WideArea {
				hops++
			}
		}
	}
	fmt.Fprintf(w, "in all %.1f ms; wide-area waits, one after the other: %d\n", x.TookMS, hops)
	if x.FloorMS > 0 {
		fmt.Fprintf(w, "that is %.2f times the floor of %.1f ms: one round trip to %s, which completes the nearest "+
			"majority of %d sites\n",
			x.Ratio, x.FloorMS, x.FloorSite, x.sites)
	}
	var near []string
	for _, d := range x.Distances {
		near = append(near, fmt.Sprintf("%s %.1f ms", d.Site, d.RoundTripMS))
	}
	fmt.Fprintf(w, "round trips from here: %s\n", command.Joined(near))
}

func (x *explanation) writeAttempt(w io.Writer, a attemptExplained) {
	outcome := a.Outcome
	if a.Reason != "" {
		outcome += ": " + a.Reason
	}
	declared := ""
	if a.Declared {
		declared = ", keys declared"
	}
	fmt.Fprintf(w, "attempt %d, mode %s, %s%s: %s\n", a.Attempt, a.Mode, a.Level, declared, outcome)
	if a.AsOf != nil {
		fmt.Fprintf(w, "  as of %s, which was %.1f ms before\n", a.AsOf.Format("15:04:05.000000"), a.AgeMS)
	}
	took := a.EndedMS - a.BeganMS
	label := len("commit")
	for _, r := range a.Reads {
		label = max(label, len([]rune(command.Printable("get "+r.Key))))
	}
	right := fmt.Sprintf("%.1f ms", a.EndedMS)
	left := fmt.Sprintf("%.1f", a.BeganMS)
	fmt.Fprintf(w, "  %*s  %s%*s\n", label, "", left, timelineWidth-len(left)+2, right)
	row := func(name, bar, text string) { fmt.Fprintf(w, "  %-*s  |%s|  %s\n", label, name, bar, text) }
	at := func(ms float64) int {
		if took <= 0 {
			return 0
		}
		return min(max(int((ms-a.BeganMS)/took*timelineWidth), 0), timelineWidth)
	}
	for _, r := range a.Reads {
		row(command.Printable("get "+r.Key), r.bar(at), r.text())
	}
	if c := a.Commit; c != nil {
		text := fmt.Sprintf("asked at %.1f", c.FromMS)
		if c.Site != "" {
			text += fmt.Sprintf(", decided at %.1f by the word of %s", c.ToMS, c.Site)
		}
		if a.Fast {
			text += ", on the fast path"
		}
		if a.HeldMS > 0 {
			text += fmt.Sprintf(", held by leaders for up to %.1f ms", a.HeldMS)
		}
		row("commit", bar(at(c.FromMS), at(c.ToMS), at(c.ToMS)), text)
	}
	var path []string
	for _, h := range a.Path {
		text := fmt.Sprintf("%s %.1f ms", h.What, h.ToMS-h.FromMS)
		if h.Site != "" {
			text += " (" + h.Site
			if h.WideArea {
				text += ", wide-area"
			}
			text += ")"
		}
		path = append(path, text)
	}
	if len(path) > 0 {
		fmt.Fprintf(w, "  waited for: %s\n", strings.Join(path, "; "))
	}
}

// bar is solid from one column to another, where somebody waits, and shaded up to a third, where
// nobody does. What has happened has a column.
func bar(from, waited, to int) string {
	from = min(from, timelineWidth-1)
	waited = min(max(waited, from+1), timelineWidth)
	to = max(to, waited)
	return strings.Repeat(" ", from) + strings.Repeat("█", waited-from) + strings.Repeat("░", to-waited) +
		strings.Repeat(" ", timelineWidth-to)
}

func (r readExplained) bar(at func(float64) int) string {
	switch {
	case r.FirstMS != nil && r.KnownMS != nil && r.Right:
		return bar(at(r.AskedMS), at(*r.FirstMS), at(*r.KnownMS))
	case r.KnownMS != nil:
		return bar(at(r.AskedMS), at(*r.KnownMS), at(*r.KnownMS))
	case r.FirstMS != nil:
		return bar(at(r.AskedMS), at(*r.FirstMS), at(*r.FirstMS))
	}
	return bar(at(r.AskedMS), timelineWidth, timelineWidth)
}

func (r readExplained) text() string {
	text := fmt.Sprintf("asked at %.1f", r.AskedMS)
	if r.FirstMS != nil {
		text += fmt.Sprintf(", %s answered at %.1f", r.FirstSite, *r.FirstMS)
		switch {
		case r.KnownMS == nil:
		case r.Right:
			text += ", rightly"
		default:
			text += ", wrongly"
		}
	}
	if r.KnownMS != nil {
		text += fmt.Sprintf(", quorum at %.1f with %s", *r.KnownMS, r.KnownSite)
	}
	return text
}

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// textWidth is how many columns WriteText fills.
const textWidth = 96

// WriteText writes the report as text for a terminal of 100 columns: each run
// with its calls and the answers that it went on with, then each call with what
// became of it. Times are in milliseconds from the task's start. Runs, calls and
// predictions count from 1.
func (r *Report) WriteText(w io.Writer) error {
	v := newView(r)
	var b bytes.Buffer
	b.WriteString(v.heading() + "\n")
	if r.Outcome != "confirmed" && r.Outcome != "" {
		wrap(&b, "because: ", []string{clean(r.Outcome)}, " ")
	}
	if r.Stalls > 0 {
		wrap(&b, "stuck: ", []string{"nothing was under way that its code waited for, so it went on without speculation; " +
			"this is a defect of Foresay"}, " ")
	}
	if len(r.LimitedBy) > 0 {
		limits := make([]string, len(r.LimitedBy))
		for i, l := range r.LimitedBy {
			limits[i] = clean(l)
		}
		wrap(&b, "limited by ", limits, ", ")
	}
	for _, g := range v.groups {
		if g.run != nil {
			v.textRun(&b, g.run)
		}
	}
	if len(r.Calls) > 0 {
		b.WriteString("\ncalls\n")
	}
	for i := range r.Calls {
		textCall(&b, &r.Calls[i])
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (v *view) textRun(b *bytes.Buffer, r *runView) {
	facts := []string{millis(r.from) + " to " + millis(r.to) + " ms", r.verdict.String()}
	if r.RefutedBy != 0 {
		facts[1] += " by call " + strconv.Itoa(r.RefutedBy)
	}
	switch {
	case r.ReplayOf != 0:
		facts = append(facts, fmt.Sprintf("takes the place of run %d", r.ReplayOf))
	case r.Doubts:
		facts = append(facts, fmt.Sprintf("waits for call %d, which may be given up", r.Cause))
	case r.Cause != 0:
		facts = append(facts, fmt.Sprintf("takes another prediction of call %d", r.Cause))
	}
	b.WriteByte('\n')
	wrap(b, fmt.Sprintf("run %d: ", r.ID), facts, ", ")
	whens, whats := make([]string, len(r.Steps)), make([]string, len(r.Steps))
	widthWhen, widthWhat := 0, 0
	for i, s := range r.Steps {
		whens[i] = millis(s.At)
		if s.Resumed > s.At {
			whens[i] += " to " + millis(s.Resumed)
		}
		widthWhen = max(widthWhen, len(whens[i]))
		whats[i] = "call " + strconv.Itoa(s.Call)
		if c := v.calls[s.Call]; c != nil {
			whats[i] += " " + shortCallSite(c.CallSite)
		}
		if s.Lane != "" {
			whats[i] += " " + clean(s.Lane)
		}
		widthWhat = min(40, max(widthWhat, utf8.RuneCountInString(whats[i])))
	}
	for i := range r.Steps {
		fmt.Fprintf(b, "  %-*s  %s  %s\n", widthWhen, whens[i], fit(whats[i], widthWhat), v.outcome(&r.Steps[i]))
	}
}

// outcome tells what a run went on with.
func (v *view) outcome(s *Step) string {
	out := "answer"
	switch {
	case s.Prediction == -1 && s.Adopted && s.Resumed <= s.At:
		return "answer, from the record"
	case s.Prediction >= 0:
		out = "prediction " + strconv.Itoa(s.Prediction+1)
		if c := v.calls[s.Call]; c != nil && c.Answered >= 0 {
			if c.Match == s.Prediction {
				out += ", right"
			} else {
				out += ", wrong"
			}
		}
	case s.Prediction < -1:
		out = "no answer"
	}
	if s.Adopted {
		out += ", adopted"
	}
	return out
}

// event is something that happened to a call.
type event struct {
	at   time.Duration
	what string
}

func textCall(b *bytes.Buffer, c *Call) {
	head := fmt.Sprintf("%3d %s, effect %s", c.ID, clean(c.CallSite), cmp.Or(clean(c.Effect), "unknown"))
	if c.Lane != "" {
		head += ", lane " + clean(c.Lane)
	}
	b.WriteString("  " + head + "\n")
	var events []event
	add := func(at time.Duration, what string) {
		if at >= 0 {
			events = append(events, event{at, what})
		}
	}
	for i, at := range c.Predicted {
		add(at, "prediction "+strconv.Itoa(i+1))
	}
	for _, h := range c.Held {
		add(h.At, "held ("+clean(h.Reason)+")")
	}
	for _, s := range c.Sent {
		if s.Speculative {
			add(s.At, "sent for a speculative caller")
		} else {
			add(s.At, "sent")
		}
	}
	switch {
	case c.Error != "":
		add(c.Answered, "failed ("+clean(c.Error)+")")
	case c.Match >= 0:
		add(c.Answered, "answered as prediction "+strconv.Itoa(c.Match+1))
	default:
		add(c.Answered, "answered")
	}
	add(c.Confirmed, "caller confirmed")
	add(c.Abandoned, "abandoned")
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var parts []string
	for i, e := range events {
		if i > 0 && e.at == events[i-1].at {
			parts[len(parts)-1] += ", " + e.what
			continue
		}
		parts = append(parts, millis(e.at)+": "+e.what)
	}
	if len(parts) > 0 {
		wrap(b, "      ", parts, "; ")
	}
}

// wrap writes the prefix and the parts in lines of textWidth columns.
func wrap(b *bytes.Buffer, prefix string, parts []string, sep string) {
	wrapTo(b, textWidth, prefix, parts, sep)
}

// wrapTo writes the prefix and the parts, as many in a line as fit in width;
// further lines are indented. Only a part that is longer than a line is broken,
// between its words.
func wrapTo(b *bytes.Buffer, width int, prefix string, parts []string, sep string) {
	const indent = "      "
	b.WriteString(prefix)
	column, empty := utf8.RuneCountInString(prefix), true
	put := func(s, before string) {
		n := utf8.RuneCountInString(s)
		switch {
		case empty:
		case column+len(before)+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(before)
			column += len(before)
		}
		b.WriteString(s)
		column, empty = column+n, false
	}
	mark := strings.TrimRight(sep, " ")
	space := sep[len(mark):]
	for i, p := range parts {
		if i < len(parts)-1 {
			p += mark
		}
		if utf8.RuneCountInString(p) <= width-len(indent) {
			put(p, space)
			continue
		}
		for j, word := range strings.Split(p, " ") {
			if j > 0 {
				space = " "
			}
			put(word, space)
		}
		space = sep[len(mark):]
	}
	b.WriteByte('\n')
}

// fit makes s exactly n columns wide.
func fit(s string, n int) string {
	s = fitTo(s, n)
	return s + strings.Repeat(" ", n-utf8.RuneCountInString(s))
}

// fitTo makes s at most n columns wide.
func fitTo(s string, n int) string {
	switch {
	case utf8.RuneCountInString(s) <= n:
		return s
	case n < 4:
		return strings.Repeat(".", n)
	}
	return string([]rune(s)[:n-2]) + ".."
}

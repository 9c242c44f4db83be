package observe

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// WriteText writes the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s since %s", span(r.At.Sub(r.Since)), r.Since.Format("2006-01-02 15:04:05 MST"))
	if s := r.Status; s != nil {
		fmt.Fprintf(&b, "; extra load now %s", percent(s.ExtraLoad))
		if s.Budget >= 0 {
			fmt.Fprintf(&b, " of a budget of %s", percent(s.Budget))
		}
		if s.Killed {
			b.WriteString("; the kill switch has stopped all speculation")
		}
	}
	b.WriteString("\n")
	if r.Status != nil {
		for _, about := range slices.Sorted(maps.Keys(r.Status.Problems)) {
			fmt.Fprintf(&b, "problem: %s: %s\n", about, strings.ReplaceAll(r.Status.Problems[about], "\n", " "))
		}
	}
	if len(r.Requests) == 0 {
		b.WriteString("\nno request has ended yet: requests begin with observe.UnaryServerInterceptor, observe.Handler or " +
			"Control.Begin\n")
	}
	for i := range r.Requests {
		b.WriteString("\n")
		r.Requests[i].write(&b)
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(&b, "\n%s calls and tasks are left out: their requests had too many\n", number(r.LeftOut))
	}
	if r.Broken > 0 {
		fmt.Fprintf(&b, "\n%s requests are left out: their times make no sense\n", number(r.Broken))
	}
	_, err := w.Write(bytes.Map(printable, b.Bytes()))
	return err
}

// printable keeps names that come from elsewhere from doing things to a terminal.
func printable(r rune) rune {
	if r != '\n' && !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

func (q *RequestReport) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "%s: %s\n", q.Name, q.Summary)
	fmt.Fprintf(b, "  %s requests, %s failed; p50 %s, p95 %s", number(q.Requests), number(q.Failed), ms(q.Latency.P50MS),
		ms(q.Latency.P95MS))
	if f := &q.Foreseen; f.Requests > 0 {
		fmt.Fprintf(b, "; with predictions p50 %s, p95 %s", ms(f.Then.P50MS), ms(f.Then.P95MS))
		if f.Skipped > 0 {
			fmt.Fprintf(b, " (worked out for %s)", number(f.Requests))
		}
	}
	b.WriteString("\n")
	if s := &q.Recent; s.Requests > 0 && s.Requests < q.Requests {
		fmt.Fprintf(b, "  in the last %s: %s requests, %s failed; mean %s, of which %s to save\n",
			span(time.Duration(s.Seconds*float64(time.Second))),
			number(s.Requests), number(s.Failed), ms(s.MeanMS), ms(s.SavedMS))
	}
	switch s := q.Realised; {
	case s == nil:
	case s.Untaken:
		fmt.Fprintf(b, "  no guess was taken in %s requests that could have taken some: p50 %s, p95 %s\n", number(s.Requests),
			ms(s.Latency.P50MS), ms(s.Latency.P95MS))
	default:
		fmt.Fprintf(b, "  speculation in %s requests: saved %s per request, p50 %s, p95 %s; %s wasted calls, "+
			"extra load %s\n", number(s.Requests), ms(s.SavedMS), ms(s.Latency.P50MS), ms(s.Latency.P95MS),
			number(s.WastedCalls), percent(s.ExtraLoad))
	}
	if f := q.IfReads; f != nil {
		fmt.Fprintf(b, "  if the methods that look so do only read: saves %s per request, p50 %s instead of %s\n",
			ms(f.SavedMS), ms(f.Then.P50MS), ms(f.Now.P50MS))
	}
	if p := q.IfPlain; p != nil {
		fmt.Fprintf(b, "  with specgrpc on the servers saves %s per request; with plain servers: %s\n",
			ms(q.Foreseen.SavedMS), ms(p.SavedMS))
	}
	if f := &q.Foreseen; f.Beside > 0 && q.Canary == nil {
		fmt.Fprintf(b, "  in %s of %s requests goroutines ran several steps beside each other: what is foreseen of these "+
			"may be too much, a canary tells\n",
			number(f.Beside), number(f.Requests))
	}
	for i := range q.Stops {
		fmt.Fprintf(b, "  %s\n", q.Stops[i].text())
	}
	if len(q.Methods) > 0 {
		q.writeMethods(b)
	}
	if q.Canary != nil {
		q.Canary.write(b)
	}
}

// writeMethods writes a table in which each row is followed by its reason.
func (q *RequestReport) writeMethods(b *bytes.Buffer) {
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "  method\tmode\tcalls\tp50\thit rate\tsaves\tload\tverdict")
	for i := range q.Methods {
		m := &q.Methods[i]
		hits := "-"
		if m.Guessed > 0 {
			hits = percent(m.HitRate)
		}
		saves, load := ms(max(m.SavedMS, m.SavedAloneMS)), "+"+percent(m.ExtraLoad)
		if !m.foreseen() {
			saves, load = "-", "-"
		}
		fmt.Fprintf(t, "  %s\t%s\t%.3g\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.modeText(), m.CallsPerRequest, ms(m.Latency.P50MS),
			hits,
			saves, load, m.Verdict)
	}
	_ = t.Flush() // to memory
	rows := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	fmt.Fprintln(b, rows[0])
	for i := range q.Methods {
		m := &q.Methods[i]
		fmt.Fprintf(b, "%s\n      %s\n", rows[i+1], m.Why)
		if m.Configure != "" {
			where := "site file"
			if !strings.HasPrefix(m.Configure, "{") {
				where = "in its line of the site file"
			}
			fmt.Fprintf(b, "      %s: %s\n", where, m.Configure)
		}
	}
}

func (m *MethodReport) modeText() string {
	text := m.Mode
	if text == "" {
		text = "-"
	}
	if m.Share > 0 {
		text += " " + percent(m.Share)
	}
	if m.State == "tripped" || m.State == "probing" {
		text += ", " + m.State
	}
	return text
}

func (c *Canary) write(b *bytes.Buffer) {
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	title := [...]string{byCanary: "canary", byModeOn: "mode on", byBoth: "canary and mode on"}[c.source()]
	fmt.Fprintf(t, "  %s\trequests\tfailed\tmean\tp50\tp95\n", title)
	for _, row := range []struct {
		name string
		arm  *Arm
	}{{"on", &c.On}, {"off", &c.Off}} {
		a := row.arm
		fmt.Fprintf(t, "  %s\t%s\t%s (%s to %s)\t%s\t%s\t%s\n", row.name, number(a.Requests), percent(a.FailedShare.Value),
			percent(a.FailedShare.Low),
			percent(a.FailedShare.High), ms(a.Latency.MeanMS), ms(a.Latency.P50MS), ms(a.Latency.P95MS))
	}
	if c.MeanMS != nil && c.P50MS != nil {
		fmt.Fprintf(t, "  on - off\t\t%s\t%s\t%s\t\n", c.FailedShare.text(percent), c.MeanMS.text(ms), c.P50MS.text(ms))
	}
	_ = t.Flush() // to memory
	fmt.Fprintf(b, "      %s\n", c.Summary)
}

func (i *Interval) text(write func(float64) string) string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", write(i.Value), write(i.Low), write(i.High))
}

// span writes a length of time shortly.
func span(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	default:
		return d.Round(10 * time.Millisecond).String()
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

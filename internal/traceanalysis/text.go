package traceanalysis

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	t := &text{Report: r, w: out, short: r.shortNames()}
	t.summary()
	for _, e := range r.Entries {
		t.entry(e)
	}
	t.closing()
	return out.Flush()
}

// text is a report being written.
type text struct {
	*Report
	w     io.Writer
	short map[string]string
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

// table writes rows whose cells are aligned to the right, but for the last.
func (t *text) table(rows func(row func(cells ...string))) {
	tab := tabwriter.NewWriter(t.w, 0, 8, 2, ' ', tabwriter.AlignRight)
	rows(func(cells ...string) { fmt.Fprintln(tab, strings.Join(cells, "\t")) })
	_ = tab.Flush() // a failure shows when the report's own writer is flushed
}

func (t *text) summary() {
	t.line("%s in %s: %s, of which %s make no call.", plural(t.Spans, "span"), plural(t.Traces, "trace"),
		plural(t.Requests, "request"), number(t.WithoutCalls))
	for _, s := range t.LeftOut.Sentences() {
		t.line("  %s", s)
	}
	if len(t.Entries) == 0 {
		return
	}
	t.line("")
	t.table(func(row func(...string)) {
		row("requests", "mean ms", "calls in a row", "waiting ms", "share", "best at "+percent(t.HitRate), "all right",
			"  kind of request")
		for _, e := range t.Entries {
			at, full := "-", "-"
			if e.Together != nil {
				at = fmt.Sprintf("%.1f", e.Together.MeanMS)
			}
			if n := len(e.Rates); n > 0 {
				full = fmt.Sprintf("%.1f", e.Rates[n-1].Took.MeanMS)
			}
			row(number(e.Requests), fmt.Sprintf("%.1f", e.Took.MeanMS), fmt.Sprintf("%.1f", e.Waits),
				fmt.Sprintf("%.1f", e.WaitMS),
				share(e.WaitMS, e.Took.MeanMS), at, full, "  "+t.name(e))
		}
	})
	if t.Others > 0 {
		t.line("and %s, whose requests wait less in all", plural(t.Others, "more kind"))
	}
}

func (t *text) name(e *Entry) string { return printable(e.Service) + ": " + printable(e.Method) }

func (t *text) entry(e *Entry) {
	t.line("\n== %s ==", t.name(e))
	sample := ""
	if e.Sampled < e.Requests {
		sample = fmt.Sprintf(" (what follows is of %s of them, drawn by chance)", number(e.Sampled))
	}
	t.line("%s%s: mean %.1f ms, p50 %.1f, p95 %.1f.", plural(e.Requests, "request"), sample, e.Took.MeanMS, e.Took.P50MS,
		e.Took.P95MS)
	t.line("On the critical path: %.1f calls one after the other, %.1f ms; the program's own time, %.1f ms.", e.Waits,
		e.WaitMS, e.OwnMS)
	t.line("\nCalls in the order in which they wait for each other (∥ beside each other):")
	t.table(func(row func(...string)) {
		for _, c := range e.Chains {
			stages := t.stages(c.Stages)
			row(percent(c.Share), fmt.Sprintf("%.1f ms", c.MeanMS), "  "+stages)
		}
	})
	if e.OtherChains > 0 {
		t.line("  and %s", plural(e.OtherChains, "more order"))
	}
	t.calls(e)
	t.rates(e)
	t.timeline(e.Timeline)
}

// stages writes a chain. A loop is in brackets.
func (t *text) stages(stages []Stage) string {
	if len(stages) == 0 {
		return "(no calls)"
	}
	var b strings.Builder
	for i, stage := range stages {
		if i > 0 {
			b.WriteString(" → ")
		}
		if stage.Repeated && (i == 0 || !stages[i-1].Repeated) {
			b.WriteString("(")
		}
		for j, name := range stage.Methods {
			if j > 0 {
				b.WriteString(" ∥ ")
			}
			method, times, many := strings.Cut(name, " ×")
			b.WriteString(t.shorten(method))
			if many {
				b.WriteString(" ×" + times)
			}
		}
		if stage.Repeated && (i == len(stages)-1 || !stages[i+1].Repeated) {
			b.WriteString(" → ...)")
		}
	}
	return b.String()
}

func (t *text) calls(e *Entry) {
	t.line("\nWhat a request waits for, and what predicting one method alone saves if it is right:")
	t.table(func(row func(...string)) {
		row("waits ms", "share", "calls", "mean ms", "p95", "server", "saves ms", "in vain", "worth it", "  call")
		for _, c := range e.Calls {
			server, saves, vain, worth := "-", "-", "-", "has effects"
			if c.ServerMS != nil {
				server = fmt.Sprintf("%.1f", *c.ServerMS)
			}
			if a := c.Alone; a != nil {
				saves, vain, worth = fmt.Sprintf("%.1f", a.SavedMS), fmt.Sprintf("%.1f", a.VainCalls), "never"
				switch {
				case a.BreakEven == nil:
				case a.SavedMS < little*e.Took.MeanMS:
					worth = "hardly"
				case *a.BreakEven < 0.005:
					worth = "at any rate"
				default:
					worth = "from " + percent(*a.BreakEven)
				}
			}
			name := "  " + printable(c.Method)
			if c.Failed > 0 {
				name += fmt.Sprintf(" (%s failed)", percent(c.Failed))
			}
			row(fmt.Sprintf("%.1f", c.WaitMS), percent(c.WaitShare), fmt.Sprintf("%.1f", c.PerRequest),
				fmt.Sprintf("%.1f", c.Took.MeanMS),
				fmt.Sprintf("%.1f", c.Took.P95MS), server, saves, vain, worth, name)
		}
	})
}

func (t *text) rates(e *Entry) {
	if e.Rates[len(e.Rates)-1].Saved < 0.0005 {
		t.line("\nNo prediction saves anything here: no read is waited for before something else that may be sent early.")
		return
	}
	of := ""
	if e.Modelled < e.Sampled {
		of = fmt.Sprintf(" (of %s requests)", number(e.Modelled))
	}
	t.line("\nWith every read predicted, by how often predictions are right%s:", of)
	t.table(func(row func(...string)) {
		row("right", "mean ms", "p50", "p95", "saved", "wasted calls", "")
		for _, r := range e.Rates {
			row(percent(r.HitRate), fmt.Sprintf("%.1f", r.Took.MeanMS), fmt.Sprintf("%.1f", r.Took.P50MS),
				fmt.Sprintf("%.1f", r.Took.P95MS), percent(r.Saved), percent(r.Extra), "")
		}
	})
	choice := func(what string, c *Choice) {
		if c == nil {
			t.line("%s at %s right: none is worth its wasted calls (--load-cost %g).", what, percent(t.HitRate), t.LoadCost)
			return
		}
		var names []string
		for _, m := range c.Methods {
			names = append(names, t.shorten(m))
		}
		t.line("%s at %s right: %s: mean %.1f ms, %s saved, %s more calls.", what, percent(t.HitRate),
			strings.Join(names, ", "), c.MeanMS, percent(c.Saved), percent(c.Extra))
	}
	t.line("")
	if e.Single != nil || e.Together == nil {
		choice("Best method", e.Single)
	}
	if e.Together != nil && len(e.Together.Methods) > 1 {
		choice("Best methods", e.Together)
	}
}

// timelineColumns is how many columns a timeline's bars have, timelineRows how many rows.
const (
	timelineColumns = 50
	timelineRows    = 30
)

func (t *text) timeline(l *Timeline) {
	label, cut := 0, 0
	bars := l.Bars
	if len(bars) > timelineRows {
		bars, cut = bars[:timelineRows], len(bars)-timelineRows
	}
	for _, b := range bars {
		label = max(label, utf8.RuneCountInString(t.shorten(b.Method)))
	}
	draw := func(what string, took float64, times func(Bar) (from, to float64), fill func(Bar) string,
		note func(Bar) string) {
		t.line("\n  %-*s  |%s|  ends at %.1f ms", label, what, line("·", 0, took, l.BeforeMS), took)
		for _, b := range bars {
			from, to := times(b)
			t.line("  %-*s  |%s|  %.1f to %.1f%s", label, t.shorten(b.Method), line(fill(b), from, to, l.BeforeMS), from, to,
				note(b))
		}
	}
	t.line("\nA typical request, and with every read predicted rightly (█ on the critical path, ▒ beside it, ▓ begun " +
		"early):")
	draw("as it was", l.BeforeMS, func(b Bar) (float64, float64) { return b.From, b.To }, func(b Bar) string {
		if b.Critical {
			return "█"
		}
		return "▒"
	}, func(Bar) string { return "" })
	draw("predicted", l.AfterMS, func(b Bar) (float64, float64) { return b.AfterFrom, b.AfterTo }, func(b Bar) string {
		switch {
		case b.AfterFrom < b.From && b.Predicted:
			return "▓"
		case b.Critical:
			return "█"
		}
		return "▒"
	}, func(b Bar) string {
		if b.Predicted {
			return ""
		}
		return ", has effects: sent when all before it is certain"
	})
	if cut > 0 {
		t.line("  and %s", plural(cut, "more call"))
	}
}

// line is a bar from one time to another on an axis that ends at a third.
func line(fill string, from, to, end float64) string {
	if end <= 0 {
		end = 1
	}
	at := func(ms float64) int { return min(max(int(math.Round(ms/end*timelineColumns)), 0), timelineColumns) }
	a, b := min(at(from), timelineColumns-1), at(to)
	b = max(b, a+1)
	return strings.Repeat(" ", a) + strings.Repeat(fill, b-a) + strings.Repeat(" ", timelineColumns-b)
}

func (t *text) closing() {
	if len(t.Entries) == 0 {
		return
	}
	t.line("\nHow often predictions would be right cannot be known from traces: they do not hold answers. Mode observe " +
		"measures it.")
	t.line("A method may be sent early if its name says that it only reads, or --pure says so; --effects says that it " +
		"may not.")
}

// shortNames takes the packages off methods' names, where that leaves them different.
func (r *Report) shortNames() map[string]string {
	full := make(map[string]string) // by short name
	short := make(map[string]string)
	for _, e := range r.Entries {
		for _, c := range e.Calls {
			name := c.Method
			if service, method, ok := strings.Cut(name, "/"); ok && !strings.Contains(service, " ") &&
				!strings.Contains(method, "/") {
				name = service[strings.LastIndex(service, ".")+1:] + "/" + method
			}
			if other, ok := full[name]; ok && other != c.Method {
				delete(short, other)
				continue
			}
			full[name], short[c.Method] = c.Method, name
		}
	}
	return short
}

func (t *text) shorten(method string) string {
	if s, ok := t.short[method]; ok {
		return printable(s)
	}
	return printable(method)
}

// Sentences say what was left out, and why.
func (l *LeftOut) Sentences() []string {
	var out []string
	add := func(n int, what, done string) {
		if n > 0 {
			out = append(out, plural(n, what)+" "+done)
		}
	}
	add(l.Unreadable, "span", "could not be read: left out")
	add(l.Broken, "place", "in the input not OTLP JSON: left out up to the next line that begins an object")
	add(l.Twice, "span", "came again: counted once")
	add(l.EndBeforeStart, "span", "ended before the beginning: left out, with the requests that wait for them")
	add(l.ParentMissing, "call", "left out: a span between the call and its request is not in the input")
	add(l.Outside, "call", "left out: without a parent, so of no request")
	add(l.CallerMissing, "request", "came from callers that are not in the input: counted")
	add(l.Circles, "span", "left out: an ancestor of itself")
	add(l.Skewed, "server's span", "outside of the call by the clocks of two machines: only the length was used")
	add(l.Longer, "server's span", "longer than the call: cut to it")
	add(l.Early, "call", "before the request: taken to begin with it")
	add(l.Late, "span", "left out: too late, for the trace had been taken apart to hold no more spans than --max-spans")
	add(l.Large, "request", fmt.Sprintf("left out: more than %d calls", maxCalls))
	add(l.Entries, "request", fmt.Sprintf("left out: more than %d kinds of request", maxEntries))
	add(l.Names, "name", fmt.Sprintf("taken together as (other): more than %d names", maxNames))
	return out
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// number writes a number with its thousands apart.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(x float64) string {
	if p := 100 * x; p > 0 && p < 9.95 && math.Abs(p-math.Round(p)) >= 0.05 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func share(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return percent(part / whole)
}

// printable makes a name from the input harmless for terminals and tables.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

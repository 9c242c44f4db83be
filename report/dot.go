package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteDOT writes the report as a Graphviz digraph: boxes are runs, ellipses
// calls, diamonds predictions. An edge leads from a run to the prediction that
// it went on with, or to the call whose actual result it had; from a prediction
// to its call, saying whether it was confirmed; from a call to the runs that its
// result discarded; and from such a run to the one that takes its place.
func (r *Report) WriteDOT(w io.Writer) error {
	d := dot{view: newView(r)}
	d.out.WriteString("digraph foresay {\n")
	d.statement("graph", "rankdir", "LR", "labelloc", "t", "fontname", "Helvetica", "label", d.heading())
	d.statement("node", "fontname", "Helvetica", "fontsize", "10", "style", "filled")
	d.statement("edge", "fontname", "Helvetica", "fontsize", "9")
	for _, g := range d.groups {
		if g.run != nil {
			d.run(g.run)
		}
		for _, c := range g.calls {
			d.call(c)
		}
	}
	for i := range r.Runs {
		d.uses(&r.Runs[i])
	}
	d.out.WriteString("}\n")
	_, err := w.Write(d.out.Bytes())
	return err
}

type dot struct {
	*view
	out bytes.Buffer
}

// color returns the colour of a verdict, which DOT and SVG share.
func (v verdict) color() string {
	switch v {
	case verdictRight, verdictConfirmed:
		return "#1a7f4b"
	case verdictWrong, verdictDiscarded, verdictFailed:
		return "#c4401c"
	case verdictAbandoned:
		return "#6e7781"
	}
	return "#1f5fa8"
}

// tint returns a light variant of color, for areas under black text.
func (v verdict) tint() string {
	switch v {
	case verdictRight, verdictConfirmed:
		return "#d9f0e3"
	case verdictWrong, verdictDiscarded, verdictFailed:
		return "#fbe3da"
	case verdictAbandoned:
		return "#e8eaed"
	}
	return "#dce9f7"
}

func (d *dot) run(r *runView) {
	label := fmt.Sprintf("run %d\n%s to %s ms\n%s", r.ID, millis(r.from), millis(r.to), r.verdict)
	d.node(dotRun(r.ID), "shape", "box", "fillcolor", r.verdict.tint(), "color", r.verdict.color(), "label", label)
	if r.ReplayOf != 0 {
		d.edge(dotRun(r.ReplayOf), dotRun(r.ID), "label", "replayed as", "style", "dashed")
	}
	if r.RefutedBy != 0 {
		d.edge(dotCall(r.RefutedBy), dotRun(r.ID), "label", "discarded at "+millis(r.Ended)+" ms", "color", r.verdict.color(),
			"constraint", "false")
	}
}

func (d *dot) call(c *callView) {
	label := c.label() + "\n" + millis(c.from) + " to " + millis(c.to) + " ms\n" + c.verdict.String()
	for _, h := range c.Held {
		label += "\n" + breakLines("held at "+millis(h.At)+" ms: "+clean(h.Reason), 32)
	}
	if c.Error != "" {
		label += "\n" + breakLines(clean(c.Error), 32)
	}
	d.node(dotCall(c.ID), "shape", "ellipse", "fillcolor", c.verdict.tint(), "color", c.verdict.color(), "label", label)
	for i, at := range c.Predicted {
		v := c.prediction(i)
		said := map[verdict]string{verdictRight: "confirmed", verdictWrong: "refuted"}[v]
		d.node(dotPrediction(c.ID, i), "shape", "diamond", "fillcolor", v.tint(), "color", v.color(),
			"label", fmt.Sprintf("prediction %d\n%s ms", i+1, millis(at)))
		d.edge(dotPrediction(c.ID, i), dotCall(c.ID), "label", cmp.Or(said, "open"), "color", v.color())
	}
}

// prediction tells what became of a prediction.
func (c *callView) prediction(i int) verdict {
	switch {
	case c.Answered < 0:
		return verdictUnsettled
	case c.Match == i:
		return verdictRight
	}
	return verdictWrong
}

func (d *dot) uses(r *Run) {
	for _, s := range r.Steps {
		to, label, style, color := dotCall(s.Call), millis(s.Resumed)+" ms", "solid", "#24292f"
		c := d.calls[s.Call]
		switch {
		case s.Prediction < -1:
			label, style = "no answer", "dotted"
		case s.Prediction >= 0 && c != nil && s.Prediction < len(c.Predicted):
			to = dotPrediction(s.Call, s.Prediction)
		}
		if s.Adopted {
			label += "\nadopted"
			color = verdictAbandoned.color()
		}
		d.edge(dotRun(r.ID), to, "label", label, "style", style, "color", color)
	}
}

// breakLines breaks s between words into lines of about n characters.
func breakLines(s string, n int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(s, " ") {
		k := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+k > n:
			b.WriteByte('\n')
			column = -1
		default:
			b.WriteByte(' ')
		}
		b.WriteString(word)
		column += 1 + k
	}
	return b.String()
}

func dotRun(id int) string           { return fmt.Sprintf("run %d", id) }
func dotCall(id int) string          { return fmt.Sprintf("call %d", id) }
func dotPrediction(id, i int) string { return fmt.Sprintf("call %d prediction %d", id, i+1) }

func (d *dot) node(name string, attributes ...string) { d.statement(quoteDOT(name), attributes...) }

func (d *dot) edge(from, to string, attributes ...string) {
	d.statement(quoteDOT(from)+" -> "+quoteDOT(to), attributes...)
}

func (d *dot) statement(subject string, attributes ...string) {
	d.out.WriteString("  " + subject + " [")
	for i := 0; i < len(attributes); i += 2 {
		if i > 0 {
			d.out.WriteString(", ")
		}
		d.out.WriteString(attributes[i] + "=" + quoteDOT(attributes[i+1]))
	}
	d.out.WriteString("];\n")
}

// quoteDOT returns s as a quoted string in which Graphviz sees neither escapes
// nor entities, but line breaks.
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;", "\n", `\n`).Replace(s) + `"`
}

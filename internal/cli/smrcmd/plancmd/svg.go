package plancmd

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
)

// Measures of the picture, in SVG's units.
const (
	planWidth = 860
	planLeft  = 128 // of the axis, or more if the sites' names are longer
	planMost  = 330 // of it then
	planSmall = 5.6 // the width of a small letter, about
	planRight = 830
	planTop   = 84 // of the first row
	planRow   = 40
)

// svg draws a row for each system, on an axis of milliseconds: a dot for each client, above the
// line for durable and below it for executed, and a stroke at the median.
func (r *planned) svg() []byte {
	var out bytes.Buffer
	add := func(format string, args ...any) {
		fmt.Fprintf(&out, format, args...)
		out.WriteByte('\n')
	}
	var longest time.Duration
	for _, s := range r.systems {
		longest = max(longest, plan.Quantile(s.rows, 1))
	}
	step := planning.AxisStep(longest)
	end := (longest/step + 1) * step
	left := r.room()
	x := func(d time.Duration) float64 { return left + float64(d)/float64(end)*(planRight-left) }
	bottom := planTop + planRow*len(r.systems)
	add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="#24292f">`,
		planWidth, bottom+40, planWidth, bottom+40)
	title := r.heading()
	add(`<title>%s</title>`, planning.Escaped(title))
	add(`<rect x="0.5" y="0.5" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>`, planWidth-1, bottom+39)
	add(`<text x="16" y="28" font-size="15" font-weight="bold">%s</text>`, planning.Escaped(title))
	add(`<circle cx="22" cy="48" r="4.5" fill="#0072b2"/><text x="32" y="52">a client&#8217;s latency until durable</text>`)
	add(`<circle cx="232" cy="48" r="4" fill="#ffffff" stroke="#d55e00" stroke-width="2"/><text x="242" y="52">until executed</text>`)
	add(`<path d="M350 42v12" stroke="#24292f" stroke-width="2"/><text x="358" y="52">median; ms</text>`)
	for t := time.Duration(0); t <= end; t += step {
		add(`<path d="M%.1f %dV%d" stroke="#eaeef2"/><text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>`,
			x(t), planTop-6, bottom+4, x(t), bottom+22, planning.Millis(t))
	}
	for i, s := range r.systems {
		y := float64(planTop + planRow*i + planRow/2)
		add(`<text x="16" y="%.1f" font-weight="bold">%s</text>`, y-1, planning.Escaped(string(s.system)))
		place := r.place(s)
		if short, fit := []rune(place), int((left-24)/planSmall); len(short) > fit {
			place = string(short[:fit-1]) + "…"
		}
		add(`<text x="16" y="%.1f" font-size="10" fill="#57606a">%s</text>`, y+12, planning.Escaped(place))
		add(`<path d="M%.1f %.1fH%d" stroke="#d0d7de"/>`, left, y, planRight)
		for _, ack := range []smr.Ack{smr.AckDurable, smr.AckExecuted} {
			up, style := -8.0, `r="4.5" fill="#0072b2" fill-opacity="0.75"`
			if ack == smr.AckExecuted {
				up, style = 8, `r="4" fill="#ffffff" fill-opacity="0.6" stroke="#d55e00" stroke-width="2"`
			}
			rows := plan.Of(s.rows, s.system, ack)
			for _, row := range rows {
				add(`<circle cx="%.1f" cy="%.1f" %s><title>%s, %v: %s ms</title></circle>`, x(row.Latency), y+up, style,
					planning.Escaped(string(row.Client.Site)), ack, planning.Millis(row.Latency))
			}
			median := x(plan.Quantile(rows, 0.5))
			add(`<path d="M%.1f %.1fV%.1f" stroke="#24292f" stroke-width="2"/>`, median, y+up-7, y+up+7)
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// place tells where a system's replicas are, or who leads if the placement was given.
func (r *planned) place(s *plannedSystem) string {
	if r.question.count > 0 {
		return strings.Join(command.SiteNames(s.replicas()), " ")
	}
	if s.leader() == "" {
		return ""
	}
	return "led by " + string(s.leader())
}

// room returns where the axis begins, so that the places fit before it.
func (r *planned) room() float64 {
	left := float64(planLeft)
	for _, s := range r.systems {
		left = max(left, 24+planSmall*float64(utf8.RuneCountInString(r.place(s))))
	}
	return min(left, planMost)
}

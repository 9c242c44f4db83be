package plancmd

import (
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

// SVG draws a row for each system, on an axis of milliseconds: a dot for each client, above the
// line for durable and below it for executed, and a stroke at the median.
func (r *planned) SVG() []byte {
	var longest time.Duration
	for _, s := range r.systems {
		longest = max(longest, plan.Quantile(s.rows, 1))
	}
	left := r.room()
	p := planning.Picture{
		Title: r.heading(), TitleSize: 15, Width: planWidth, Left: left, Right: planRight, Top: planTop,
		Bottom: planTop + planRow*len(r.systems), Longest: longest,
		Legend: []string{
			`<circle cx="22" cy="48" r="4.5" fill="#0072b2"/><text x="32" y="52">a client&#8217;s latency until durable</text>`,
			`<circle cx="232" cy="48" r="4" fill="#ffffff" stroke="#d55e00" stroke-width="2"/><text x="242" y="52">until executed</text>`,
			`<path d="M350 42v12" stroke="#24292f" stroke-width="2"/><text x="358" y="52">median; ms</text>`,
		},
	}
	p.Begin()
	for i, s := range r.systems {
		y := float64(planTop + planRow*i + planRow/2)
		p.Add(`<text x="16" y="%.1f" font-weight="bold">%s</text>`, y-1, planning.Escaped(string(s.system)))
		place := r.place(s)
		if short, fit := []rune(place), int((left-24)/planSmall); len(short) > fit {
			place = string(short[:fit-1]) + "…"
		}
		p.Add(`<text x="16" y="%.1f" font-size="10" fill="#57606a">%s</text>`, y+12, planning.Escaped(place))
		p.Add(`<path d="M%.1f %.1fH%d" stroke="#d0d7de"/>`, left, y, planRight)
		for _, ack := range []smr.Ack{smr.AckDurable, smr.AckExecuted} {
			up, style := -8.0, `r="4.5" fill="#0072b2" fill-opacity="0.75"`
			if ack == smr.AckExecuted {
				up, style = 8, `r="4" fill="#ffffff" fill-opacity="0.6" stroke="#d55e00" stroke-width="2"`
			}
			rows := plan.Of(s.rows, s.system, ack)
			for _, row := range rows {
				p.Add(`<circle cx="%.1f" cy="%.1f" %s><title>%s, %v: %s ms</title></circle>`, p.X(row.Latency), y+up, style,
					planning.Escaped(string(row.Client.Site)), ack, planning.Millis(row.Latency))
			}
			median := p.X(plan.Quantile(rows, 0.5))
			p.Add(`<path d="M%.1f %.1fV%.1f" stroke="#24292f" stroke-width="2"/>`, median, y+up-7, y+up+7)
		}
	}
	return p.End()
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

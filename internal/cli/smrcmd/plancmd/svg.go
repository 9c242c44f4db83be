package plancmd

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
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

// mark is how the dots of a moment look, and how far below the line of their system they are.
type mark struct {
	style string
	up    float64
}

// marks are those of a system's moments, in order.
func marks() []mark {
	return []mark{
		{`r="4.5" fill="#0072b2" fill-opacity="0.75"`, -8},
		{`r="4" fill="#ffffff" fill-opacity="0.6" stroke="#d55e00" stroke-width="2"`, 8},
		{`r="3" fill="#009e73" fill-opacity="0.75"`, 0},
	}
}

// SVG draws a row for each system, on an axis of milliseconds: a dot for each client, the first
// moment's above the line and the second's below it, and a stroke at the median.
func (r *planned) SVG() []byte {
	var longest time.Duration
	for _, s := range r.systems {
		longest = max(longest, plan.Quantile(s.rows, 1))
	}
	left := r.room()
	p := planning.Picture{
		Title: r.heading(), TitleSize: 15, Width: planWidth, Left: left, Right: planRight, Top: planTop,
		Bottom: planTop + planRow*len(r.systems), Longest: longest,
	}
	for i, m := range r.question.moments() {
		p.Legend = append(p.Legend, fmt.Sprintf(`<circle cx="%d" cy="48" %s/><text x="%d" y="52">%v</text>`, 22+110*i,
			marks()[i].style, 32+110*i, m))
	}
	p.Legend = append(p.Legend,
		`<path d="M350 42v12" stroke="#24292f" stroke-width="2"/><text x="358" y="52">median; a dot for each client; ms</text>`)
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
		for i, m := range r.question.moments() {
			rows, up := plan.Of(s.rows, s.system, m), marks()[i].up
			for _, row := range rows {
				p.Add(`<circle cx="%.1f" cy="%.1f" %s><title>%s, %v: %s ms</title></circle>`, p.X(row.Latency), y+up,
					marks()[i].style, planning.Escaped(string(row.Client.Site)), m, planning.Millis(row.Latency))
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

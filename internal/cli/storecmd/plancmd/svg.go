package plancmd

import (
	"time"

	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/store/plan"
)

// Measures of the picture, in SVG's units.
const (
	width = 860
	left  = 170 // of the axis
	right = 830
	top   = 84 // of the first system
	line  = 18 // of a class
	gap   = 14 // between systems
)

// SVG draws for each system and class of transactions a line from the median to the 95th
// percentile, on an axis of milliseconds.
func (r *planned) SVG() []byte {
	var longest time.Duration
	rows := 0
	for _, s := range r.systems {
		longest = max(longest, s.row(plan.All).P95)
		for _, class := range plan.Classes()[1:] {
			if row := s.row(class); row.Share > 0 {
				longest = max(longest, row.P95)
				rows++
			}
		}
	}
	p := planning.Picture{
		Title: r.heading(), TitleSize: 13, Width: width, Left: left, Right: right, Top: top,
		Bottom: top + rows*line + len(r.systems)*gap, Longest: longest,
		Legend: []string{
			`<circle cx="22" cy="48" r="4.5" fill="#0072b2"/><text x="32" y="52">median</text>`,
			`<path d="M102 43v10" stroke="#0072b2" stroke-width="2"/><text x="110" y="52">95th percentile; ms. ro: reads only; lrt, rpt: writes, all partitions here, or not</text>`,
		},
	}
	p.Begin()
	y := float64(top)
	for _, s := range r.systems {
		p.Add(`<text x="16" y="%.1f" font-weight="bold">%s</text>`, y+13, planning.Escaped(string(s.system)))
		for _, class := range plan.Classes()[1:] {
			row := s.row(class)
			if row.Share == 0 {
				continue
			}
			from, to, mid := p.X(row.Median), p.X(row.P95), y+line/2
			p.Add(`<text x="%d" y="%.1f" text-anchor="end" font-size="10" fill="#57606a">%s</text>`, left-8, mid+4, class)
			p.Add(`<path d="M%.1f %.1fH%.1fm0 -5v10" stroke="#0072b2" stroke-width="2" fill="none"/>`, from, mid, to)
			p.Add(`<circle cx="%.1f" cy="%.1f" r="4.5" fill="#0072b2"><title>%s, %s: median %s ms, 95th percentile %s</title></circle>`,
				from, mid, planning.Escaped(string(s.system)), class, planning.Millis(row.Median), planning.Millis(row.P95))
			y += line
		}
		y += gap
	}
	return p.End()
}

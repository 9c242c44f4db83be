package plancmd

import (
	"bytes"
	"fmt"
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

// svg draws for each system and class of transactions a line from the median to the 95th
// percentile, on an axis of milliseconds.
func (r *planned) svg() []byte {
	var out bytes.Buffer
	add := func(format string, args ...any) {
		fmt.Fprintf(&out, format, args...)
		out.WriteByte('\n')
	}
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
	step := planning.AxisStep(longest)
	end := (longest/step + 1) * step
	x := func(d time.Duration) float64 { return left + float64(d)/float64(end)*(right-left) }
	bottom := top + rows*line + len(r.systems)*gap
	add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="#24292f">`,
		width, bottom+40, width, bottom+40)
	title := r.heading()
	add(`<title>%s</title>`, planning.Escaped(title))
	add(`<rect x="0.5" y="0.5" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>`, width-1, bottom+39)
	add(`<text x="16" y="28" font-size="13" font-weight="bold">%s</text>`, planning.Escaped(title))
	add(`<circle cx="22" cy="48" r="4.5" fill="#0072b2"/><text x="32" y="52">median</text>`)
	add(`<path d="M102 43v10" stroke="#0072b2" stroke-width="2"/><text x="110" y="52">95th percentile; ms. ro: reads only; lrt, rpt: writes, all partitions here, or not</text>`)
	for t := time.Duration(0); t <= end; t += step {
		add(`<path d="M%.1f %dV%d" stroke="#eaeef2"/><text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>`,
			x(t), top-6, bottom+4, x(t), bottom+22, planning.Millis(t))
	}
	y := float64(top)
	for _, s := range r.systems {
		add(`<text x="16" y="%.1f" font-weight="bold">%s</text>`, y+13, planning.Escaped(string(s.system)))
		for _, class := range plan.Classes()[1:] {
			row := s.row(class)
			if row.Share == 0 {
				continue
			}
			from, to, mid := x(row.Median), x(row.P95), y+line/2
			add(`<text x="%d" y="%.1f" text-anchor="end" font-size="10" fill="#57606a">%s</text>`, left-8, mid+4, class)
			add(`<path d="M%.1f %.1fH%.1fm0 -5v10" stroke="#0072b2" stroke-width="2" fill="none"/>`, from, mid, to)
			add(`<circle cx="%.1f" cy="%.1f" r="4.5" fill="#0072b2"><title>%s, %s: median %s ms, 95th percentile %s</title></circle>`,
				from, mid, planning.Escaped(string(s.system)), class, planning.Millis(row.Median), planning.Millis(row.P95))
			y += line
		}
		y += gap
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

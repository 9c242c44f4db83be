package history

import (
	"fmt"
	"strings"
)

// reportCycle reports a cycle of edges.
func (f *cycleFinder) reportCycle(cycle []int32, order Order) {
	p, _ := f.classify(cycle)
	a := Anomaly{Phenomenon: p, Order: order}
	cycle = f.rotate(cycle)
	for i := 0; i < len(cycle); {
		e := f.g.edges[cycle[i]]
		// An edge to a node that stands for several goes on to one of them.
		for i++; i < len(cycle) && f.g.edges[cycle[i]].kind == edgePass; i++ {
			pass := f.g.edges[cycle[i]]
			e.to = pass.to
			if e.kind&edgeOrders == 0 {
				e.after = pass.after
			}
		}
		a.Txns = append(a.Txns, f.x.id(e.from))
		a.cycle = append(a.cycle, f.step(e))
	}
	f.report.add(a, func() string { return explainCycle(a) })
}

// maxSteps is how many steps of a cycle are told.
const maxSteps = 30

func explainCycle(a Anomaly) string {
	var b strings.Builder
	for i, id := range a.Txns {
		if i == maxSteps {
			b.WriteString(" < ...")
			break
		}
		if i > 0 {
			b.WriteString(" < ")
		}
		fmt.Fprintf(&b, "%v", id)
	}
	fmt.Fprintf(&b, " < %v, a cycle:\n", a.Txns[0])
	for i, step := range a.cycle {
		if i == maxSteps {
			fmt.Fprintf(&b, "\tand %d more\n", len(a.cycle)-i)
			break
		}
		fmt.Fprintf(&b, "\t%s\n", step.text)
	}
	return b.String()
}

// step explains an edge between transactions.
func (f *cycleFinder) step(e edge) cycleStep {
	from, to := &f.x.h.Txns[e.from], &f.x.h.Txns[e.to]
	switch e.kind {
	case edgeSession:
		return cycleStep{
			label: "session",
			text:  fmt.Sprintf("%v came before %v in the session of client %d", from.ID, to.ID, from.Client),
		}
	case edgeTime:
		return cycleStep{
			label: "real time",
			text:  fmt.Sprintf("%v ended at %v, before %v began at %v", from.ID, from.End, to.ID, to.Begin),
		}
	}
	name := f.x.keys[e.key].name
	version := "nothing"
	if e.before >= 0 {
		version = fmt.Sprintf("version %q", f.x.writes[e.before].value)
	}
	switch e.kind {
	case edgeWW:
		return cycleStep{
			label: "ww " + name,
			text: fmt.Sprintf("%v wrote %s of %q, which %v followed with %q", from.ID, version, name, to.ID,
				f.x.writes[e.after].value),
		}
	case edgeWR:
		return cycleStep{
			label: "wr " + name,
			text:  fmt.Sprintf("%v wrote %s of %q, which %v read", from.ID, version, name, to.ID),
		}
	}
	return cycleStep{
		label: "rw " + name,
		text: fmt.Sprintf("%v read %s of %q, which %v followed with %q", from.ID, version, name, to.ID,
			f.x.writes[e.after].value),
	}
}

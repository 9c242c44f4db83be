package geostore

import (
	"fmt"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// A hopCount counts what transactions of a point's workload wait for, one after the other: in the
// simulator, where each is alone. There the messages can be followed by which an answer has come.
type hopCount map[string][]storesim.Measurement

// of returns transactions of each client of a point, for a system whose clients wait for what they
// read; nil for others. What varies between points that cannot be seen where each transaction is
// alone is measured once.
func (h hopCount) of(o bench.Options, p studyPoint, s system) ([]storesim.Measurement, error) {
	if p.place == nil || s.mode != client.GRPC {
		return nil, nil
	}
	setting := p.place.setting()
	setting.Load.Workload, setting.Load.Locality, setting.Load.Seed = p.workload, p.locality, o.Seed
	name := fmt.Sprintf("%s %s %s %T %v %v %d", s.name, p.place.wan, p.place.label(), p.workload, p.place.stale,
		p.place.general, p.locality)
	if all, ok := h[name]; ok {
		return all, nil
	}
	all, err := storesim.Measure(storesim.Config{System: plan.System(s.name), Setting: setting,
		Txns: bench.Pick(o, 10, 40), Seed: max(o.Seed, 1)})
	if err == nil {
		h[name] = all
	}
	return all, err
}

// paths says how transactions of a class, of clients at a site, are decided: how many of those that
// write by the protocol's fast path, as was measured, and how many wide-area round trips they wait
// for one after the other: half as many as messages from one site to another, of which each was
// sent in the course of the one before, from the first call to the last answer.
func (m outcome) paths(site wan.Site, class plan.Class, all []modelled) (row table.Row) {
	committed, fast := 0, 0
	for _, t := range all {
		for _, a := range t.Attempts {
			if t.class != plan.ReadOnly && a.Committed {
				if committed++; a.Fast {
					fast++
				}
			}
		}
	}
	if committed > 0 {
		row = append(row, table.Measure("fast_path_percent", 100*float64(fast)/float64(committed)))
	}
	hops, n := 0, 0
	for _, t := range m.hops {
		if (site == "all" || t.Client == site) && isIn(t.Class, class) {
			hops, n = hops+t.Hops, n+1
		}
	}
	if n > 0 {
		row = append(row, table.Measure("wide_area_trips", float64(hops)/float64(2*n)))
	}
	return row
}

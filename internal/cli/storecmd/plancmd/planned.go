package plancmd

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// planned is the answer to a question.
type planned struct {
	question question
	systems  []*plannedSystem // the floor first
}

// plannedSystem is what one protocol gives.
type plannedSystem struct {
	system  plan.System
	setting plan.Setting
	rows    []plan.Row
	// without are the rows of all clients and transactions while a site is lost, by the network's
	// sites.
	without []plan.Row
	check   []compared
}

// compared is what one client's transactions of a class took in the simulator, and in the model.
type compared struct {
	client            wan.Site
	class             plan.Class
	txns              int
	measured, modeled time.Duration // means
}

// tolerated is how far model and measurement may be apart.
const tolerated = 0.02

func (c compared) off() float64 {
	return float64((c.measured - c.modeled).Abs()) / float64(max(c.modeled, time.Millisecond))
}

func planSystem(s plan.Setting, system plan.System) (*plannedSystem, error) {
	p := &plannedSystem{system: system, setting: s}
	var err error
	if p.rows, err = plan.Latencies(s, system); err != nil {
		return nil, err
	}
	for _, s.Lost = range s.WAN.Sites() {
		rows, err := plan.Latencies(s, system)
		if err != nil {
			return nil, err
		}
		p.without = append(p.without, rows[0])
	}
	return p, nil
}

// row returns that of all clients, of a class.
func (p *plannedSystem) row(class plan.Class) plan.Row { return p.rowOf("", class) }

func (p *plannedSystem) rowOf(client wan.Site, class plan.Class) plan.Row {
	for _, r := range p.rows {
		if r.Client == client && r.Class == class {
			return r
		}
	}
	return plan.Row{}
}

// worstLoss is what the loss of that site does which does most: the others' median, and the shares
// of transactions that are blocked and that fast paths decide.
func (p *plannedSystem) worstLoss() (median time.Duration, blocked, fast float64) {
	fast = 1
	for _, r := range p.without {
		median, blocked, fast = max(median, r.Median), max(blocked, r.Blocked), min(fast, r.Fast)
	}
	return median, blocked, fast
}

// Checks has the protocols that there are run in the simulator; the others are models only.
func (r *planned) Checks() (checks []planning.Check) {
	for _, s := range r.systems {
		if _, ok := storesim.ProtocolOf(s.system); !ok {
			continue
		}
		checks = append(checks, planning.Check{System: string(s.system), Run: func() error {
			all, err := storesim.Measure(storesim.Config{System: s.system, Setting: s.setting, Seed: 1})
			s.compare(all)
			return err
		}})
	}
	return checks
}

// compare sums measurements up.
func (p *plannedSystem) compare(all []storesim.Measurement) {
	for _, m := range all {
		i := len(p.check) - 1
		for ; i >= 0 && (p.check[i].client != m.Client || p.check[i].class != m.Class); i-- {
		}
		if i < 0 {
			p.check, i = append(p.check, compared{client: m.Client, class: m.Class}), len(p.check)
		}
		p.check[i].txns++
		p.check[i].measured += m.Took
		p.check[i].modeled += m.Modeled
	}
	for i := range p.check {
		p.check[i].measured /= time.Duration(p.check[i].txns)
		p.check[i].modeled /= time.Duration(p.check[i].txns)
	}
}

// Off tells where model and measurement are too far apart.
func (r *planned) Off() (off []string) {
	for _, s := range r.systems {
		for _, c := range s.check {
			if c.off() > tolerated {
				off = append(off, fmt.Sprintf("%s at %s, %s: %s ms, the model says %s", s.system, c.client, c.class,
					planning.Millis(c.measured), planning.Millis(c.modeled)))
			}
		}
	}
	return off
}

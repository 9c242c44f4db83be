package plancmd

import (
	"fmt"
	"strconv"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/plan"
)

// tolerated is how far model and measurement may be apart.
const tolerated = 0.05

// Checks has the protocols run in the simulator.
func (r *planned) Checks() (checks []planning.Check) {
	for _, s := range r.systems {
		if s.system != r.systems[0].system {
			checks = append(checks, planning.Check{System: string(s.system), Run: func() error {
				return s.compare(r.question.setting.Slack)
			}})
		}
	}
	return checks
}

func (s *plannedSystem) compare(slack time.Duration) error {
	if s.system.Byzantine() {
		protocol, err := catalog.Byzantine(string(s.system))
		if err != nil {
			return err
		}
		s.check, err = plansim.CompareByzantine(protocol, s.setting, 1)
		return err
	}
	protocol, err := catalog.Protocol(string(s.system))
	if err != nil {
		return err
	}
	if slack > 0 {
		protocol = withSlack(protocol, slack)
	}
	s.check, err = plansim.Compare(plansim.Config{Protocol: protocol, Setting: s.setting, Seed: 1})
	return err
}

// Off tells where model and measurement are too far apart.
func (r *planned) Off() (off []string) {
	for _, s := range r.systems {
		for _, c := range s.check {
			if c.Off() > tolerated {
				off = append(off, fmt.Sprintf("%s at %s, %v: %s ms, the model says %s", s.system, c.Client.Site, c.Until,
					planning.Millis(c.Measured), planning.Millis(c.Latency)))
			}
		}
	}
	return off
}

// measured returns rows with what was measured in place of what the model says, and how far the
// worst client is from that.
func (s *plannedSystem) measured(m plan.Moment) (rows []plan.Row, off string) {
	worst, claimed := 0.0, true
	for _, c := range s.check {
		if c.Until == m {
			row := c.Row
			row.Latency = c.Measured
			rows = append(rows, row)
			worst, claimed = max(worst, c.Off()), c.Claimed
		}
	}
	if !claimed {
		return rows, "not claimed"
	}
	return rows, strconv.FormatFloat(100*worst, 'f', 1, 64) + " %"
}

// withSlack returns the variant of Domino that has a slack, under the name by which the model knows
// it; other protocols have none.
func withSlack(p smr.Protocol, slack time.Duration) smr.Protocol {
	s := replicated.SystemOf(p)
	if s.Options == nil {
		return p
	}
	o := *s.Options
	o.Slack, o.AdaptSlack = slack, false
	return domino.New(p.Name, p.Doc, o)
}

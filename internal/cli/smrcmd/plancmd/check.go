package plancmd

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
)

// tolerated is how far model and measurement may be apart.
const tolerated = 0.05

// check has the protocols run in the simulator.
func (p *program) check(ctx context.Context, q question, r *planned) error {
	bar := command.NewProgress(p.Err)
	defer bar.Clear()
	for i, s := range r.systems {
		if s.system == plan.Floor {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("smr plan: interrupted")
		}
		if bar.Terminal {
			bar.Report(bench.Progress{Experiment: "smr plan --check", Done: i, Total: len(r.systems), Doing: string(s.system)})
		}
		protocol, err := catalog.Protocol(string(s.system))
		if err != nil {
			return fmt.Errorf("smr plan: %w", err)
		}
		if q.setting.Slack > 0 {
			protocol = withSlack(protocol, q.setting.Slack)
		}
		if s.check, err = plansim.Compare(plansim.Config{Protocol: protocol, Setting: s.setting, Seed: 1}); err != nil {
			return fmt.Errorf("smr plan: --check: %w", err)
		}
	}
	return nil
}

// verdict is an error if model and measurement are too far apart somewhere.
func (r *planned) verdict() error {
	var bad []string
	for _, s := range r.systems {
		for _, c := range s.check {
			if c.Off() > tolerated {
				bad = append(bad, fmt.Sprintf("%s at %s, %v: %s ms, the model says %s", s.system, c.Client.Site, c.Ack,
					planning.Millis(c.Measured), planning.Millis(c.Latency)))
			}
		}
	}
	return planning.Verdict("smr plan", bad)
}

// measured returns rows with what was measured in place of what the model says, and how far the
// worst client is from that.
func (s *plannedSystem) measured(ack smr.Ack) (rows []plan.Row, off string) {
	worst, claimed := 0.0, true
	for _, c := range s.check {
		if c.Ack == ack {
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

// withSlack returns the variant of Domino that has a slack; other protocols have none.
func withSlack(p smr.Protocol, slack time.Duration) smr.Protocol {
	s := replicated.SystemOf(p)
	if s.Options == nil {
		return p
	}
	o := *s.Options
	o.Slack, o.AdaptSlack = slack, false
	return s.With(o).Protocol
}

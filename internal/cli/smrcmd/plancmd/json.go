package plancmd

import (
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
)

// The JSON of 'smr plan'. All latencies are in milliseconds.
type document struct {
	Network string           `json:"network"`
	By      string           `json:"by,omitempty"` // of a search
	SlackMS float64          `json:"slack_ms,omitempty"`
	Busy    bool             `json:"busy,omitempty"`
	Systems []systemDocument `json:"systems"`
}

type systemDocument struct {
	System   string           `json:"system"`
	Replicas []string         `json:"replicas"` // the leader's first
	Leader   string           `json:"leader,omitempty"`
	Better   *leaderDocument  `json:"better_leader,omitempty"`
	Durable  latencyDocument  `json:"durable"`
	Executed latencyDocument  `json:"executed"`
	Clients  []clientDocument `json:"clients"`
}

type leaderDocument struct {
	Leader string  `json:"leader"`
	MS     float64 `json:"ms"`
}

type latencyDocument struct {
	MeanMS  float64 `json:"mean_ms"`
	P50MS   float64 `json:"p50_ms"`
	P95MS   float64 `json:"p95_ms"`
	WorstMS float64 `json:"worst_ms"`
	// With all of the links' jitter.
	JitterP50MS   float64 `json:"jitter_p50_ms"`
	JitterP95MS   float64 `json:"jitter_p95_ms"`
	JitterWorstMS float64 `json:"jitter_worst_ms"`
}

type clientDocument struct {
	Site       string          `json:"site"`
	Weight     float64         `json:"weight"`
	Via        string          `json:"via,omitempty"` // who proposes; none if the client sends to all
	DurableMS  float64         `json:"durable_ms"`
	ExecutedMS float64         `json:"executed_ms"`
	Durable    *offsetDocument `json:"durable_check,omitempty"`
	Executed   *offsetDocument `json:"executed_check,omitempty"`
}

// offsetDocument is what was measured, and how far it is from what the model expects.
type offsetDocument struct {
	MeasuredMS float64 `json:"measured_ms"`
	// Between these the model expects it: of executions by Mencius and Domino, which depend on what
	// else goes on, it expects a range.
	FromMS  float64 `json:"from_ms"`
	ToMS    float64 `json:"to_ms"`
	Off     float64 `json:"off"` // how far it is from there, as a share of the latency
	Claimed bool    `json:"claimed"`
}

// Document is for --json: everything, clients included.
func (r *planned) Document() any {
	q := r.question
	d := document{Network: q.network, SlackMS: planning.Rounded(q.setting.Slack), Busy: q.setting.Busy}
	if q.count > 0 {
		d.By = q.by()
	}
	for _, s := range r.systems {
		durable, executed := plan.Of(s.rows, s.system, smr.AckDurable), plan.Of(s.rows, s.system, smr.AckExecuted)
		out := systemDocument{
			System: string(s.system), Replicas: command.SiteNames(s.replicas()), Leader: string(s.leader()),
			Durable: latencyOf(durable), Executed: latencyOf(executed),
		}
		if s.better.Replicas != nil {
			out.Better = &leaderDocument{string(s.better.Replicas[0]), planning.Rounded(s.better.Latency)}
		}
		for i, row := range durable {
			c := clientDocument{Site: string(row.Client.Site), Weight: row.Client.Weight, Via: string(row.Via),
				DurableMS: planning.Rounded(row.Latency), ExecutedMS: planning.Rounded(executed[i].Latency)}
			if row.Client.Weight == 0 {
				c.Weight = 1
			}
			if s.check != nil {
				c.Durable, c.Executed = s.offset(2*i), s.offset(2*i+1)
			}
			out.Clients = append(out.Clients, c)
		}
		d.Systems = append(d.Systems, out)
	}
	return d
}

func (s *plannedSystem) offset(i int) *offsetDocument {
	c := s.check[i]
	return &offsetDocument{MeasuredMS: planning.Rounded(c.Measured), FromMS: planning.Rounded(c.Low),
		ToMS: planning.Rounded(c.High),
		Off:  c.Off(), Claimed: c.Claimed}
}

func latencyOf(rows []plan.Row) latencyDocument {
	at := func(of func([]plan.Row, float64) time.Duration, share float64) float64 {
		return planning.Rounded(of(rows, share))
	}
	return latencyDocument{
		planning.Rounded(plan.Mean(rows)), at(plan.Quantile, 0.5), at(plan.Quantile, 0.95), at(plan.Quantile, 1),
		at(plan.LongestQuantile, 0.5), at(plan.LongestQuantile, 0.95), at(plan.LongestQuantile, 1),
	}
}

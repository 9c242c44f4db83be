package plancmd

import (
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/store/plan"
)

// document is what --json writes.
type document struct {
	Network  string           `json:"network"`
	Txns     string           `json:"txns"`
	Declared bool             `json:"declared"`
	By       string           `json:"by,omitempty"` // if placements were searched
	Systems  []systemDocument `json:"systems"`
}

type systemDocument struct {
	System    string          `json:"system"`
	Promises  string          `json:"promises,omitempty"`
	Placement [][]string      `json:"placement,omitempty"` // by partition, its leader's site first; absent: all have all
	Rows      []rowDocument   `json:"rows"`
	Lost      []lostDocument  `json:"lost"`
	Check     []checkDocument `json:"check,omitempty"`
}

// rowDocument is of a class of transactions; of all clients if there is no client.
type rowDocument struct {
	Client  string  `json:"client,omitempty"`
	Class   string  `json:"class"`
	Share   float64 `json:"share"`
	MeanMS  float64 `json:"mean_ms"`
	P50MS   float64 `json:"p50_ms"`
	P95MS   float64 `json:"p95_ms"`
	WorstMS float64 `json:"worst_ms"`
	Fast    float64 `json:"fast"` // share of the transactions that write
}

type lostDocument struct {
	Site    string  `json:"site"`
	P50MS   float64 `json:"p50_ms"`
	Blocked float64 `json:"blocked"` // share of the transactions
	Fast    float64 `json:"fast"`
}

type checkDocument struct {
	Client     string  `json:"client"`
	Class      string  `json:"class"`
	Txns       int     `json:"txns"`
	MeasuredMS float64 `json:"measured_ms"`
	ModelMS    float64 `json:"model_ms"`
	Off        float64 `json:"off"`
}

// Document is for --json: everything, clients included.
func (r *planned) Document() any {
	q := r.question
	d := document{Network: q.network, Txns: q.txns, Declared: q.setting.Load.Declared}
	if q.search {
		d.By = string(q.goal.Measure) + "-" + string(q.goal.Class)
	}
	for _, s := range r.systems {
		out := systemDocument{System: string(s.system)}
		if s.system != plan.Floor {
			out.Promises = s.system.Level()
		}
		if !s.system.Whole() {
			for _, at := range s.setting.Placement {
				out.Placement = append(out.Placement, command.SiteNames(at))
			}
		}
		for _, row := range s.rows {
			out.Rows = append(out.Rows, rowDocument{string(row.Client), string(row.Class), row.Share,
				planning.Rounded(row.Mean), planning.Rounded(row.Median), planning.Rounded(row.P95), planning.Rounded(row.Worst),
				row.Fast})
		}
		for i, site := range s.setting.WAN.Sites() {
			row := s.without[i]
			out.Lost = append(out.Lost, lostDocument{string(site), planning.Rounded(row.Median), row.Blocked, row.Fast})
		}
		for _, c := range s.check {
			out.Check = append(out.Check, checkDocument{string(c.client), string(c.class), c.txns, planning.Rounded(c.measured),
				planning.Rounded(c.modeled), c.off()})
		}
		d.Systems = append(d.Systems, out)
	}
	return d
}

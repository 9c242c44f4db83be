package plancmd

import (
	"cmp"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
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
	System   string          `json:"system"`
	Replicas []string        `json:"replicas"` // the leader's first
	Leader   string          `json:"leader,omitempty"`
	Better   *leaderDocument `json:"better_leader,omitempty"`
	*CrashSystem
	*ByzantineSystem
	Clients []clientDocument `json:"clients"`
}

// CrashSystem is what there is of systems whose replicas can only crash, ByzantineSystem of the
// others.
type CrashSystem struct {
	Durable  latencyDocument `json:"durable"`
	Executed latencyDocument `json:"executed"`
}

// ByzantineSystem is what there is of systems whose replicas may lie.
type ByzantineSystem struct {
	First     latencyDocument `json:"first"`
	Confirmed latencyDocument `json:"confirmed"`
	Read      latencyDocument `json:"read"`
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
	Site   string  `json:"site"`
	Weight float64 `json:"weight"`
	Via    string  `json:"via,omitempty"` // who proposes; none if the client sends to all
	*CrashClient
	*ByzantineClient
}

// CrashClient is what a client of a CrashSystem gets.
type CrashClient struct {
	DurableMS  float64         `json:"durable_ms"`
	ExecutedMS float64         `json:"executed_ms"`
	Durable    *offsetDocument `json:"durable_check,omitempty"`
	Executed   *offsetDocument `json:"executed_check,omitempty"`
}

// ByzantineClient is what a client of a ByzantineSystem gets.
type ByzantineClient struct {
	FirstMS     float64         `json:"first_ms"`
	ConfirmedMS float64         `json:"confirmed_ms"`
	ReadMS      float64         `json:"read_ms"`
	First       *offsetDocument `json:"first_check,omitempty"`
	Confirmed   *offsetDocument `json:"confirmed_check,omitempty"`
	Read        *offsetDocument `json:"read_check,omitempty"`
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
		out := systemDocument{System: string(s.system), Replicas: command.SiteNames(s.replicas()),
			Leader: string(s.leader())}
		if of := s.latencyOf; s.system.Byzantine() {
			out.ByzantineSystem = &ByzantineSystem{of(plan.First), of(plan.Confirmed), of(plan.Read)}
		} else {
			out.CrashSystem = &CrashSystem{of(plan.Durable), of(plan.Executed)}
		}
		if s.better.Replicas != nil {
			out.Better = &leaderDocument{string(s.better.Replicas[0]), planning.Rounded(s.better.Latency)}
		}
		for i := 0; i < len(s.rows); i += len(q.moments()) {
			out.Clients = append(out.Clients, s.client(i))
		}
		d.Systems = append(d.Systems, out)
	}
	return d
}

// client returns what the client gets whose rows begin with the ith.
func (s *plannedSystem) client(i int) clientDocument {
	row := s.rows[i]
	c := clientDocument{Site: string(row.Client.Site), Weight: cmp.Or(row.Client.Weight, 1), Via: string(row.Via)}
	ms := func(k int) float64 { return planning.Rounded(s.rows[i+k].Latency) }
	if s.system.Byzantine() {
		c.ByzantineClient = &ByzantineClient{ms(0), ms(1), ms(2), s.offset(i), s.offset(i + 1), s.offset(i + 2)}
	} else {
		c.CrashClient = &CrashClient{ms(0), ms(1), s.offset(i), s.offset(i + 1)}
	}
	return c
}

// offset returns what was measured of the ith row, nil if nothing was.
func (s *plannedSystem) offset(i int) *offsetDocument {
	if s.check == nil {
		return nil
	}
	c := s.check[i]
	return &offsetDocument{MeasuredMS: planning.Rounded(c.Measured), FromMS: planning.Rounded(c.Low),
		ToMS: planning.Rounded(c.High),
		Off:  c.Off(), Claimed: c.Claimed}
}

func (s *plannedSystem) latencyOf(m plan.Moment) latencyDocument {
	rows := plan.Of(s.rows, s.system, m)
	at := func(of func([]plan.Row, float64) time.Duration, share float64) float64 {
		return planning.Rounded(of(rows, share))
	}
	return latencyDocument{
		planning.Rounded(plan.Mean(rows)), at(plan.Quantile, 0.5), at(plan.Quantile, 0.95), at(plan.Quantile, 1),
		at(plan.LongestQuantile, 0.5), at(plan.LongestQuantile, 0.95), at(plan.LongestQuantile, 1),
	}
}

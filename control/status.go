package control

import (
	"maps"
	"time"
)

// Status is what a Control has to tell at one moment.
type Status struct {
	At     time.Time `json:"at"`
	Killed bool      `json:"killed"`
	// Budget is the extra load that may be caused, negative for no limit, and
	// ExtraLoad the one caused lately: wasted calls per call that counts.
	Budget    float64 `json:"budget"`
	ExtraLoad float64 `json:"extra_load"`
	// ControlShare is which share of the requests mode on leaves without speculation:
	// see Config.
	ControlShare float64 `json:"control_share,omitempty"`
	// Runs is how many runs of the Control's tasks went on with predictions and are
	// neither confirmed nor discarded.
	Runs      int64            `json:"runs"`
	Tasks     uint64           `json:"tasks"` // whose reports were kept, ever
	CallSites []CallSiteStatus `json:"sites"`
	// Problems are what is wrong, such as a file that cannot be read, by what it is about.
	Problems map[string]string `json:"problems,omitempty"`
}

// CallSiteStatus is a call site at one moment.
type CallSiteStatus struct {
	Name   string        `json:"name"`
	Conn   string        `json:"conn,omitempty"`
	Effect string        `json:"effect"`
	Mode   Mode          `json:"mode"`
	Share  float64       `json:"share,omitempty"`
	Origin Origin        `json:"origin"` // of the mode: code, file or runtime
	State  CallSiteState `json:"state"`
	// State is StateLearning in modes that use no predictions. Reason and Until say why a tripped
	// call site is, and for how long.
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// HitRate, BreakEven and ExtraLoad are those of the window: see Config;
	// of a tripped call site, those that it tripped with. Judged is how many predictions
	// they come from. BreakEven is Cost / (Cost + Gain), and at least 0.05: what a
	// wrong prediction wastes, and what a right one spares.
	HitRate   float64 `json:"hit_rate"`
	BreakEven float64 `json:"break_even"`
	ExtraLoad float64 `json:"extra_load"`
	Judged    float64 `json:"judged"`
	// Conclusive says that the call site is judged by HitRate and BreakEven: its mode uses
	// predictions, and enough of them are judged, or it has tripped.
	Conclusive bool `json:"conclusive"`

	Gain time.Duration `json:"gain_ns"`
	Cost time.Duration `json:"cost_ns"`
	// Predictors is how many the call site has. With none, what would have been right
	// is the last response to the same request.
	Predictors int           `json:"predictors"`
	Stats      CallSiteStats `json:"stats"`
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Status returns what there is to tell now.
func (c *Control) Status() Status {
	c.judge()
	_, tasks := c.Tasks(0)
	out := Status{At: time.Now(), Killed: c.Killed(), Budget: c.cfg.Budget, ControlShare: max(c.cfg.ControlShare, 0),
		Runs: c.runs.Load(), Tasks: tasks}
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Problems = maps.Clone(c.wrong)
	useful := max(c.useful, 1)
	for _, s := range c.sites {
		t := &s.trip
		set, origin := s.board.from()
		state := t.at(set.mode)
		seen := t.shown(state)
		st := CallSiteStatus{
			Name: s.cfg.Name, Conn: s.conn, Effect: s.cfg.Effect.String(), Mode: set.mode, Share: set.share, Origin: origin,
			State:   state,
			HitRate: seen.hitRate(), BreakEven: seen.breakEven(), ExtraLoad: t.window.wasted / useful,
			Judged: seen.judged(), Gain: seconds(seen.gain()), Cost: seconds(seen.cost()), Predictors: len(s.cfg.Predictors),
			Stats: s.Stats(),
		}
		st.Conclusive = st.Mode >= ModeCanary && (st.Judged >= enough || st.State == StateTripped)
		if state != StateLearning {
			st.Reason = t.reason
		}
		if state == StateTripped {
			st.Until = time.Unix(0, t.until.Load())
		}
		out.ExtraLoad += st.ExtraLoad
		out.CallSites = append(out.CallSites, st)
	}
	return out
}

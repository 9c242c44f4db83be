package service

import (
	"context"
	"fmt"
	"net/http"

	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/transport"
)

// metricsHandler answers /metrics, /ready and /debug/pprof/.
func (r *Replica) metricsHandler() http.Handler {
	mux := metrics.NewMux()
	mux.Handle("GET /metrics", metrics.Handler(r.registry, func(ctx context.Context, page *metrics.Page) error {
		s, err := r.Status(ctx)
		if err == nil {
			r.figures(page, s)
		}
		return err
	}))
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), metrics.StatusTimeout)
		defer cancel()
		statuses, err := r.Status(ctx)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		leads := 0
		for _, s := range statuses {
			if why := unready(s); why != "" {
				http.Error(w, why, http.StatusServiceUnavailable)
				return
			}
			if s.Leader == s.Replica {
				leads++
			}
		}
		switch s := statuses[0]; {
		case s.Leaderless:
			fmt.Fprintf(w, "%s, there is no leader\n", s.Role)
		case len(statuses) > 1:
			fmt.Fprintf(w, "%d groups, it leads %d\n", len(statuses), leads)
		default:
			fmt.Fprintf(w, "%s, replica %d leads\n", s.Role, s.Leader)
		}
	})
	return mux
}

// unready returns why a group would not do what clients ask of this replica, "" if it would.
func unready(s Status) string {
	why := ""
	switch {
	case s.Ready:
		return ""
	case s.Leaderless:
		why = s.Role + ", it does not serve yet"
	default:
		why = "no leader is known"
	}
	if s.Group > 0 {
		return fmt.Sprintf("group %d: %s", s.Group, why)
	}
	return why
}

// figures are what the replica knows of itself, and its host of it. If there are several groups,
// most are of each.
func (r *Replica) figures(page *metrics.Page, statuses []Status) {
	page.Gauge("foresay_smr_info", "What the replica is: 1.", 1, "protocol", r.cfg.Protocol, "cluster", r.cfg.Cluster,
		"replica", fmt.Sprint(r.cfg.ID))
	for _, s := range statuses {
		groupFigures(page, s)
	}
	h := r.host.Stats()
	for _, n := range h.Nodes {
		if n.Addr.Group == statusGroup || n.Addr.Group == hostGroup {
			continue
		}
		metrics.Node(page, "foresay_smr_", n, groupLabel(r.groupOf(n.Addr.Group))...)
	}
	metrics.Network(page, "foresay_smr_", h.Network)
	for _, p := range h.Network.Peers {
		page.Gauge("foresay_smr_peer_up", "Whether a member can be reached.", metrics.Flag(p.State == transport.Up), "member",
			fmt.Sprint(p.ID))
	}
}

// groupOf returns the number of a group, as in Status.Group, by where its nodes are.
func (r *Replica) groupOf(g transport.Group) int {
	if len(r.groups) == 1 {
		return 0
	}
	for i := range r.groups {
		if nodeGroup(i) == g {
			return i + 1
		}
	}
	return 0
}

func groupLabel(group int) []string {
	if group == 0 {
		return nil
	}
	return []string{"group", fmt.Sprint(group)}
}

func groupFigures(page *metrics.Page, s Status) {
	gauge := func(name, help string, value float64) {
		page.Gauge("foresay_smr_"+name, help, value, groupLabel(s.Group)...)
	}
	gauge("ready", "Whether requests of clients would be executed, by this replica or by the leader that it knows.",
		metrics.Flag(s.Ready))
	if !s.Leaderless {
		gauge("leader", "Whether this replica leads.", metrics.Flag(s.Leader == s.Replica && s.Leader != 0))
		gauge("has_leader", "Whether this replica knows who leads.", metrics.Flag(s.Leader != 0))
	}
	gauge("term", "The term or ballot, or how often the members have changed.", float64(s.Term))
	gauge("committed_slot", "All slots up to it are decided, as far as this replica knows.", float64(s.Committed))
	gauge("applied_slot", "All commands up to it are executed here.", float64(s.Applied))
	gauge("snapshot_slot", "The slot of the newest snapshot.", float64(s.Snapshot))
	gauge("log_records", "Records in the log.", float64(s.Log))
	gauge("sessions", "Open sessions of clients.", float64(s.Sessions))
	gauge("keys", "Keys that the store of this replica holds.", float64(s.Keys))
	gauge("data_bytes", "Bytes of keys and values that it holds.", float64(s.Bytes))
	gauge("quota_keys", "Keys that it may hold, 0 for any number.", float64(s.QuotaKeys))
	gauge("quota_bytes", "Bytes of keys and values that it may hold, 0 for any number.", float64(s.QuotaBytes))
	if s.ClaimsAheadSeconds != nil {
		gauge("claims_ahead_seconds", "How far what was promised by time is ahead of this replica's clock.",
			*s.ClaimsAheadSeconds)
		gauge("clock_held_seconds", "By how much this replica's clock is ahead and not followed.", s.ClockHeldSeconds)
	}
	gauge("members", "Members of the group.", float64(len(s.Members)))
	gauge("learners", "Replicas that wait to be added.", float64(len(s.Learners)))
}

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
		s, err := r.Status(ctx)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case s.Role == Outside:
			http.Error(w, fmt.Sprintf("it is no member in epoch %d", s.Epoch), http.StatusServiceUnavailable)
		case s.Role == ViewChange:
			http.Error(w, fmt.Sprintf("it waits for view %d to begin", s.View), http.StatusServiceUnavailable)
		default:
			fmt.Fprintf(w, "%s in view %d, replica %d leads\n", s.Role, s.View, s.Primary)
		}
	})
	return mux
}

// figures are what the replica knows of itself, and its host of it.
func (r *Replica) figures(page *metrics.Page, s Status) {
	gauge := func(name, help string, value float64) { page.Gauge("foresay_bft_"+name, help, value) }
	page.Gauge("foresay_bft_info", "What the replica is: 1.", 1, "protocol", s.Protocol, "service", s.Service,
		"cluster", r.cfg.group.Cluster, "replica", fmt.Sprint(s.Replica))
	gauge("ready", "Whether the replica takes part in a view.", metrics.Flag(s.Role != ViewChange && s.Role != Outside))
	gauge("leader", "Whether this replica is the primary.", metrics.Flag(s.Role == Primary))
	gauge("epoch", "The epoch of members and keys.", float64(s.Epoch))
	gauge("view", "The view, of the epoch.", float64(s.View))
	gauge("stable_checkpoint", "The place of the newest stable checkpoint.", float64(s.Stable))
	gauge("committed_place", "All batches up to it are committed here.", float64(s.Committed))
	gauge("executed_place", "All batches up to it are executed here, the last ones tentatively.", float64(s.Executed))
	page.Counter("foresay_bft_transfers_total", "States that were fetched from others.", uint64(s.Transfers))
	page.Counter("foresay_bft_refused_parts_total", "Parts of states that others gave it and that were wrong.",
		uint64(s.RefusedParts))
	page.Counter("foresay_bft_repairs_total", "How often the disk had something else than it should, which was mended.",
		uint64(s.Repairs))
	page.Counter("foresay_bft_unchecked_signatures_total", "Signatures that were not checked: a peer had sent too many.",
		s.UncheckedSignatures)
	h := r.life.Load().host.Stats()
	for _, n := range h.Nodes {
		if n.Addr.Group == nodeGroup {
			metrics.Node(page, "foresay_bft_", n)
		}
	}
	metrics.Network(page, "foresay_bft_", h.Network)
	for _, p := range h.Network.Peers {
		page.Gauge("foresay_bft_peer_up", "Whether a member can be reached.", metrics.Flag(p.State == transport.Up),
			"member", fmt.Sprint(p.ID))
	}
}

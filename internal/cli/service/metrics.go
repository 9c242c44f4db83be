package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/transport"
)

// statusTimeout bounds the wait for the figures of a request.
const statusTimeout = time.Second

// metricsHandler answers /metrics and /ready.
func (r *Replica) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
		defer cancel()
		s, err := r.Status(ctx)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		var b bytes.Buffer
		r.writeMetrics(&b, s)
		w.Header().Set("Content-Type", metrics.ContentType)
		w.Write(b.Bytes()) // who asked may be gone
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
		defer cancel()
		s, err := r.Status(ctx)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !s.Ready && s.Leaderless:
			http.Error(w, s.Role+", it does not serve yet", http.StatusServiceUnavailable)
		case !s.Ready:
			http.Error(w, "no leader is known", http.StatusServiceUnavailable)
		case s.Leaderless:
			fmt.Fprintf(w, "%s, there is no leader\n", s.Role)
		default:
			fmt.Fprintf(w, "%s, replica %d leads\n", s.Role, s.Leader)
		}
	})
	return mux
}

// writeMetrics writes the figures in Prometheus' text format.
func (r *Replica) writeMetrics(w io.Writer, s Status) {
	page := metrics.Page{Writer: w}
	one := page.One
	one("ready", metrics.Gauge, "Whether what clients ask for would be done, by this replica or by the leader that it knows.", s.Ready)
	if !s.Leaderless {
		one("leader", metrics.Gauge, "Whether this replica leads.", s.Leader == s.Replica && s.Leader != 0)
		one("has_leader", metrics.Gauge, "Whether this replica knows who leads.", s.Leader != 0)
	}
	one("term", metrics.Gauge, "The term or ballot, or how often the members have changed.", s.Term)
	one("committed_slot", metrics.Gauge, "All slots up to it are decided, as far as this replica knows.", s.Committed)
	one("applied_slot", metrics.Gauge, "All commands up to it are executed here.", s.Applied)
	one("snapshot_slot", metrics.Gauge, "The slot of the newest snapshot.", s.Snapshot)
	one("log_records", metrics.Gauge, "Records in the log.", s.Log)
	one("sessions", metrics.Gauge, "Open sessions of clients.", s.Sessions)
	one("members", metrics.Gauge, "Members of the group.", len(s.Members))

	h := r.host.Stats()
	for _, n := range h.Nodes {
		if n.Addr.Group != serviceGroup {
			continue
		}
		one("steps_total", metrics.Counter, "Calls of the replica's node.", n.Steps)
		one("queued_messages", metrics.Gauge, "Messages that the node has not looked at.", n.Queued)
		one("held_messages", metrics.Gauge, "Messages that wait for the disk.", n.Held)
		one("dropped_messages_total", metrics.Counter, "Messages that came to a full queue.", n.Dropped)
		one("malformed_messages_total", metrics.Counter, "Messages that could not be read.", n.Malformed)
		one("disk_commits_total", metrics.Counter, "Commits to the disk.", n.Commits)
		one("disk_commit_seconds_sum", metrics.Counter, "How long they took in all.", n.CommitLatency.Sum.Seconds())
	}
	one("received_messages_total", metrics.Counter, "Messages that arrived.", h.Network.Received)
	one("client_streams", metrics.Gauge, "Clients that are connected.", h.Network.Clients)
	one("refused_handshakes_total", metrics.Counter, "Connections without a valid certificate.", h.Network.RefusedHandshakes)
	page.Head("peer_up", metrics.Gauge, "Whether a member can be reached.")
	for _, p := range h.Network.Peers {
		page.Value("peer_up", fmt.Sprintf("member=\"%d\"", p.ID), p.State == transport.Up)
	}
}

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/foresay/foresay/transport"
)

// Bounds of the requests for metrics.
const (
	metricsTimeout  = 5 * time.Second
	statusTimeout   = time.Second
	metricsShutdown = time.Second
)

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
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Write(b.Bytes()) // who asked may be gone
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
		defer cancel()
		s, err := r.Status(ctx)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case s.Leader == 0:
			http.Error(w, "no leader is known", http.StatusServiceUnavailable)
		default:
			fmt.Fprintf(w, "%s, replica %d leads\n", s.Role, s.Leader)
		}
	})
	return mux
}

// serveMetrics serves them until ctx ends.
func (r *Replica) serveMetrics(ctx context.Context) error {
	server := &http.Server{Handler: r.metricsHandler(), ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(r.metrics) }()
	select {
	case err := <-served:
		return fmt.Errorf("metrics: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), metricsShutdown)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	return err
}

// writeMetrics writes the figures in Prometheus' text format.
func (r *Replica) writeMetrics(w io.Writer, s Status) {
	one := func(name, kind, help string, value any) {
		fmt.Fprintf(w, "# HELP foresay_%s %s\n# TYPE foresay_%s %s\nforesay_%s %v\n", name, help, name, kind, name, value)
	}
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	one("leader", "gauge", "Whether this replica leads.", flag(s.Leader == s.Replica && s.Leader != 0))
	one("has_leader", "gauge", "Whether this replica knows who leads.", flag(s.Leader != 0))
	one("term", "gauge", "The term or ballot.", s.Term)
	one("committed_slot", "gauge", "All slots up to it are decided, as far as this replica knows.", s.Committed)
	one("applied_slot", "gauge", "All commands up to it are executed here.", s.Applied)
	one("snapshot_slot", "gauge", "The slot of the newest snapshot.", s.Snapshot)
	one("log_records", "gauge", "Records in the log.", s.Log)
	one("sessions", "gauge", "Open sessions of clients.", s.Sessions)
	one("members", "gauge", "Members of the group.", len(s.Members))

	h := r.host.Stats()
	for _, n := range h.Nodes {
		if n.Addr.Group != serviceGroup {
			continue
		}
		one("steps_total", "counter", "Calls of the replica's node.", n.Steps)
		one("queued_messages", "gauge", "Messages that the node has not looked at.", n.Queued)
		one("held_messages", "gauge", "Messages that wait for the disk.", n.Held)
		one("dropped_messages_total", "counter", "Messages that came to a full queue.", n.Dropped)
		one("malformed_messages_total", "counter", "Messages that could not be read.", n.Malformed)
		one("disk_commits_total", "counter", "Commits to the disk.", n.Commits)
		one("disk_commit_seconds_sum", "counter", "How long they took in all.", n.CommitLatency.Sum.Seconds())
	}
	one("received_messages_total", "counter", "Messages that arrived.", h.Network.Received)
	one("client_streams", "gauge", "Clients that are connected.", h.Network.Clients)
	one("refused_handshakes_total", "counter", "Connections without a valid certificate.", h.Network.RefusedHandshakes)
	fmt.Fprint(w, "# HELP foresay_peer_up Whether a member can be reached.\n# TYPE foresay_peer_up gauge\n")
	for _, p := range h.Network.Peers {
		fmt.Fprintf(w, "foresay_peer_up{member=\"%d\"} %d\n", p.ID, flag(p.State == transport.Up))
	}
}

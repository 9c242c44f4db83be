package storeservice

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/foresay/foresay/internal/cli/metrics"
)

// statusTimeout bounds the wait for the figures of a request.
const statusTimeout = time.Second

// Status returns how the machine is.
func (m *Machine) Status(ctx context.Context) (Status, error) {
	s, err := m.node.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	return describe(s, time.Now()), nil
}

// page answers /metrics and /ready.
func (m *Machine) page() http.Handler {
	mux := http.NewServeMux()
	answer := func(write func(http.ResponseWriter, Status)) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
			defer cancel()
			s, err := m.Status(ctx)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			write(w, s)
		}
	}
	mux.HandleFunc("GET /metrics", answer(func(w http.ResponseWriter, s Status) {
		var b bytes.Buffer
		writeMetrics(metrics.Page{Writer: &b}, s)
		w.Header().Set("Content-Type", metrics.ContentType)
		w.Write(b.Bytes()) // who asked may be gone
	}))
	mux.HandleFunc("GET /ready", answer(func(w http.ResponseWriter, s Status) {
		if s.State != Admitted {
			http.Error(w, s.State, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, s.State)
	}))
	return mux
}

func writeMetrics(p metrics.Page, s Status) {
	p.One("store_epoch", metrics.Gauge, "The epoch of the store's file.", s.Epoch)
	p.One("store_uptime_seconds", metrics.Gauge, "Since the machine began.", s.UptimeSeconds)
	for _, f := range [...]struct {
		name, help string
		value      func(ShardStatus) any
	}{
		{"admitted", "Whether the shard takes part.", func(s ShardStatus) any { return s.State == Admitted }},
		{"syncing", "Whether it still copies what another site has.", func(s ShardStatus) any { return s.State == Syncing }},
		{"transactions", "Transactions that it remembers.", func(s ShardStatus) any { return s.Transactions }},
		{"undecided_transactions", "Those of them that are not decided.", func(s ShardStatus) any { return s.Undecided }},
		{"blocked_transactions", "Those that cannot be decided before a site is back or fenced.", func(s ShardStatus) any { return s.Blocked }},
		{"wanting_transactions", "Those that are committed, but whose writes it lacks.", func(s ShardStatus) any { return s.Wanting }},
		{"oldest_undecided_seconds", "The age of the oldest that is not decided.", func(s ShardStatus) any { return s.OldestUndecidedSeconds }},
		{"locked_keys", "Keys that undecided transactions have.", func(s ShardStatus) any { return s.Locked }},
		{"waiting_reads", "Reads that wait for such keys.", func(s ShardStatus) any { return s.Waiting }},
		{"reserved_keys", "Keys that are kept for transactions which were refused before.", func(s ShardStatus) any { return s.Reserved }},
	} {
		p.Head("store_"+f.name, metrics.Gauge, f.help)
		for _, sh := range s.Shards {
			p.Value("store_"+f.name, fmt.Sprintf("shard=\"%d\"", sh.Shard), f.value(sh))
		}
	}
}

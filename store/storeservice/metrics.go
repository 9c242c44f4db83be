package storeservice

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/transport"
)

// Status returns how the machine is.
func (m *Machine) Status(ctx context.Context) (Status, error) {
	s, err := m.node.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	return describe(s, time.Now()), nil
}

// page answers /metrics, /ready and /debug/pprof/.
func (m *Machine) page() http.Handler {
	mux := metrics.NewMux()
	mux.Handle("GET /metrics", metrics.Handler(m.figures.registry, func(ctx context.Context, page *metrics.Page) error {
		s, err := m.Status(ctx)
		if err != nil {
			return err
		}
		servers, err := m.node.Servers(ctx)
		if err != nil {
			return err
		}
		tellStatus(page, s)
		tellSpeculation(page, s.Speculation)
		for _, sh := range s.Shards {
			tellSnapshots(page, sh.Shard, sh.Snapshots)
		}
		for _, server := range servers {
			tellCounts(page, fmt.Sprint(server.Shard), server.Counts)
			tellOrder(page, fmt.Sprint(server.Shard), server.Order)
		}
		m.tellHost(page)
		return nil
	}))
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), metrics.StatusTimeout)
		defer cancel()
		s, err := m.Status(ctx)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if s.State != Admitted {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, m.readiness(s))
	})
	return mux
}

// readiness is how the machine is, in lines: its state, what keeps it from taking part, the
// machines that it does not reach, what waits, and what ends that.
func (m *Machine) readiness(s Status) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.State)
	for _, line := range []string{s.why(), s.lonely()} {
		if line != "" && !strings.Contains(b.String(), line) {
			fmt.Fprintln(&b, line)
		}
	}
	for _, sh := range s.Shards {
		if sh.Held+sh.Waiting+sh.Blocked > 0 {
			fmt.Fprintf(&b, "shard %d: %d votes and %d reads wait for keys, %d transactions are blocked\n", sh.Shard, sh.Held,
				sh.Waiting, sh.Blocked)
		}
		for _, t := range sh.BlockedTransactions {
			fmt.Fprintf(&b, "shard %d: transaction %s is blocked, %.0f s old\n", sh.Shard, t.ID, t.AgeSeconds)
		}
	}
	all := []Status{s}
	for _, site := range m.cfg.Store.Sites {
		for _, other := range site.Machines {
			if site.Since == m.cfg.Store.Epoch && !site.Fenced && site.Name != s.Site {
				// unless the machine reaches it
				all = append(all, Status{Site: site.Name, Machine: other.Name, State: Unreachable, New: true})
			}
		}
	}
	for _, r := range Remedies(all, filepath.Dir(m.cfg.StorePath())) {
		fmt.Fprintf(&b, "site %s: %s; %s: %s\n", r.Site, r.Trouble, r.When(), r.Command)
	}
	return b.String()
}

// figures are those that a machine counts as it goes.
type figures struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	answers  *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	commits  prometheus.Histogram
	methods  map[string]methodFigures // of those that matter for speed, by their last names; does not change
}

// methodFigures are those of one method that each of its calls needs.
type methodFigures struct {
	inFlight prometheus.Gauge
	answered prometheus.Observer // those of f.requests without an error
	accepted prometheus.Counter  // those of f.answers that say yes
}

func newFigures() *figures {
	f := &figures{
		registry: metrics.NewRegistry(),
		requests: prometheus.NewHistogramVec(metrics.Durations("foresay_store_request_duration_seconds",
			"How long requests of clients took at this machine: Read is one of a key, Commit of a transaction's verdict by "+
				"this site."), []string{"method", "code"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "foresay_store_commit_answers_total",
			Help: "Answers to Commit requests: the site's vote, or the decision if that is known; cause is why a transaction " +
				"was refused."}, []string{"answer", "cause"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "foresay_store_requests_in_flight",
			Help: "Requests of clients that are not answered."}, []string{"method"}),
		commits: prometheus.NewHistogram(metrics.Durations("foresay_store_disk_commit_duration_seconds",
			"How long commits to the disk took until they were durable.")),
	}
	f.registry.MustRegister(f.requests, f.answers, f.inFlight, f.commits)
	f.methods = map[string]methodFigures{}
	for _, method := range []string{pb.Store_Read_FullMethodName, pb.Store_Commit_FullMethodName} {
		f.methods[path.Base(method)] = f.of(path.Base(method)) // so that there is a zero, too
	}
	return f
}

func (f *figures) of(method string) methodFigures {
	if m, ok := f.methods[method]; ok {
		return m
	}
	return methodFigures{
		inFlight: f.inFlight.WithLabelValues(method),
		answered: f.requests.WithLabelValues(method, codes.OK.String()),
		accepted: f.answers.WithLabelValues("yes", store.NoReason.String()),
	}
}

// begin observes a client's call. What it returns is called when that ends.
func (f *figures) begin(method string) (end func(resp any, err error)) {
	start, m := time.Now(), f.of(method)
	m.inFlight.Inc()
	return func(resp any, err error) {
		m.inFlight.Dec()
		took := time.Since(start).Seconds()
		if err != nil {
			f.requests.WithLabelValues(method, status.Code(err).String()).Observe(took)
			return
		}
		m.answered.Observe(took)
		if c, ok := resp.(*pb.CommitResponse); !ok {
			return
		} else if answer, cause := answerOf(c); answer == "yes" {
			m.accepted.Inc()
		} else {
			f.answers.WithLabelValues(answer, cause).Inc()
		}
	}
}

// answerOf returns what an answer to Commit says, and why a transaction was refused.
func answerOf(c *pb.CommitResponse) (answer, cause string) {
	reason := func(r pb.Reason) string { return store.Reason(r).String() }
	switch {
	case c.GetVote().GetYes():
		return "yes", reason(0)
	case c.GetVote() != nil:
		return "no", reason(c.GetVote().GetReason())
	case c.GetDecision().GetVerdict() == pb.Decision_VERDICT_COMMITTED:
		return "committed", reason(0)
	case c.GetDecision().GetVerdict() == pb.Decision_VERDICT_ABORTED:
		return "aborted", reason(c.GetDecision().GetReason())
	}
	return "unknown", reason(c.GetDecision().GetReason())
}

// tellStatus adds what the machine's status says.
func tellStatus(p *metrics.Page, s Status) {
	p.Gauge("foresay_store_info", "What the machine is: 1.", 1, "site", s.Site, "machine", s.Machine)
	p.Gauge("foresay_store_epoch", "The epoch of the store's file.", float64(s.Epoch))
	p.Gauge("foresay_store_uptime_seconds", "Since the machine began.", float64(s.UptimeSeconds))
	for _, f := range [...]struct {
		name, help string
		value      func(ShardStatus) float64
	}{
		{"admitted", "Whether the shard takes part.", func(s ShardStatus) float64 {
			return metrics.Flag(s.State == Admitted)
		}},
		{"syncing", "Whether it still copies what another site has.", func(s ShardStatus) float64 {
			return metrics.Flag(s.State == Syncing)
		}},
		{"transactions", "Transactions that it remembers.", func(s ShardStatus) float64 { return float64(s.Transactions) }},
		{"transaction_bytes", "What their keys and values take in memory.", func(s ShardStatus) float64 {
			return float64(s.TransactionBytes)
		}},
		{"undecided_transactions", "Those of them that are not decided.", func(s ShardStatus) float64 {
			return float64(s.Undecided)
		}},
		{"blocked_transactions", "Those that cannot be decided before a site is back or fenced.",
			func(s ShardStatus) float64 { return float64(s.Blocked) }},
		{"wanting_transactions", "Those that are committed, but whose writes it lacks.", func(s ShardStatus) float64 {
			return float64(s.Wanting)
		}},
		{"oldest_undecided_seconds", "The age of the oldest that is not decided.", func(s ShardStatus) float64 {
			return s.OldestUndecidedSeconds
		}},
		{"locked_keys", "Keys that undecided transactions have.", func(s ShardStatus) float64 { return float64(s.Locked) }},
		{"waiting_reads", "Reads that wait for such keys.", func(s ShardStatus) float64 { return float64(s.Waiting) }},
		{"held_votes", "Requests for a vote that wait for such keys.", func(s ShardStatus) float64 {
			return float64(s.Held)
		}},
		{"reserved_keys", "Keys that are kept for transactions which were refused before.", func(s ShardStatus) float64 {
			return float64(s.Reserved)
		}},
	} {
		for _, sh := range s.Shards {
			p.Gauge("foresay_store_"+f.name, f.help, f.value(sh), "shard", fmt.Sprint(sh.Shard))
		}
	}
}

// elsewhere is the cause of an abort that this shard has not refused.
const elsewhere = "refused elsewhere"

// tellCounts adds what a shard's server has done: each count by reason from the start on, so that
// the first of a kind is seen as a growth.
func tellCounts(p *metrics.Page, shard string, c store.Counts) {
	p.Counter("foresay_store_committed_transactions_total",
		"Committed transactions with keys of the shard, carried out here.", c.Committed, "shard", shard)
	p.Counter("foresay_store_accepting_votes_total",
		"Votes of the shard for a transaction, those that only read included.", c.Accepted, "shard", shard)
	p.Counter("foresay_store_copied_values_total",
		"Values that the shard has copied from other sites, as it took the place of another one or after it was away.",
		c.CopiedValues, "shard", shard)
	p.Counter("foresay_store_copied_bytes_total", "What they and their keys take.", c.CopiedBytes, "shard", shard)
	for i, n := range c.Aborted {
		cause := store.Reason(i).String()
		if store.Reason(i) == store.NoReason {
			cause = elsewhere
		}
		p.Counter("foresay_store_aborted_transactions_total",
			"Aborted transactions with keys of the shard, by why the shard had refused them.", n, "shard", shard, "cause", cause)
	}
	for i, n := range c.Refused {
		if store.Reason(i) != store.NoReason {
			p.Counter("foresay_store_refusing_votes_total",
				"Votes of the shard against a transaction, those that only read included, by cause.",
				n, "shard", shard, "cause", store.Reason(i).String())
		}
	}
}

// tellOrder adds what became of requests that are handled in the order of their arrival; nil: they
// are not.
func tellOrder(p *metrics.Page, shard string, o *store.OrderStatus) {
	if o == nil {
		return
	}
	bounds := store.HeldBounds()
	p.Histogram("foresay_store_arrival_hold_duration_seconds",
		"How long requests were held until the time at which they should have arrived at all servers.", bounds[:],
		o.Times[:], o.Sum, "shard", shard)
	p.Gauge("foresay_store_arrival_holding_requests", "Requests that are held until their time.", float64(o.Holding),
		"shard", shard)
	p.Counter("foresay_store_arrival_late_requests_total", "Requests that came after their time.", o.Late, "shard", shard)
	p.Counter("foresay_store_arrival_full_requests_total", "Requests for which there was no room.", o.Full, "shard", shard)
}

// tellHost adds what the machine's nodes and its network have done.
func (m *Machine) tellHost(p *metrics.Page) {
	nodes, network := m.node.Stats()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		metrics.Node(p, "foresay_store_", nodes[name], "node", name)
	}
	metrics.Network(p, "foresay_store_", network)
	up := 0
	for _, peer := range network.Peers {
		if peer.State == transport.Up {
			up++
		}
	}
	p.Gauge("foresay_store_peer_nodes", "Nodes of other machines.", float64(len(network.Peers)))
	p.Gauge("foresay_store_reachable_peer_nodes", "Those of them that can be reached.", float64(up))
}

package docs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// committer commits everything.
type committer struct{ client.Backend }

func (committer) Begin(client.Beginning) client.Attempt { return commits{} }

func (committer) Promises() history.Level { return history.StrictSerializable }

type commits struct{ client.Attempt }

func (commits) End() {}

func (commits) Commit(context.Context, client.Submission) client.Decision {
	return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
}

// TestStoreMetrics: what docs/store.md has a client's process export counts transactions, and
// Prometheus' linter finds nothing in it.
func TestStoreMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	config := client.Config{Backend: committer{}, Mode: client.GRPC}
	txns := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "shop_store_transaction_duration_seconds", Help: "From a transaction's first attempt to an attempt's outcome.",
		NativeHistogramBucketFactor: 1.1, Buckets: prometheus.ExponentialBucketsRange(0.001, 10, 41),
	}, []string{"outcome", "cause"})
	registry.MustRegister(txns)
	config.Attempted = func(a client.Attempted) {
		txns.WithLabelValues(a.Outcome.Verdict.String(), a.Outcome.Reason.String()).Observe(a.SinceFirst.Seconds())
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Txn(t.Context(), func(_ context.Context, tx *client.Tx) error { return tx.Put("k", nil) }); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	m := families[0].GetMetric()
	if len(m) != 1 || m[0].GetHistogram().GetSampleCount() != 1 || !strings.Contains(m[0].String(), `"committed"`) {
		t.Errorf("exported is %v, want one committed transaction", m)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter says %v, %v", problems, err)
	}
}

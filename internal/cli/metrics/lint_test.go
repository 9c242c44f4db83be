package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresay/foresay/internal/cli/metrics/metricstest"
)

// scrape returns a page as text.
func scrape(t *testing.T, h http.Handler) (code int, page string) {
	t.Helper()
	got := httptest.NewRecorder()
	h.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return got.Code, got.Body.String()
}

// TestBounds: a classic histogram tells a median of 18 ms from one of 21 ms, and has no bucket that
// is much wider than others.
func TestBounds(t *testing.T) {
	b := bounds()
	if b[0] != 1e-4 || b[len(b)-1] != 100 {
		t.Errorf("bounds from %v to %v, want 100 µs to 100 s", b[0], b[len(b)-1])
	}
	var below, above float64
	for i, x := range b {
		if i > 0 && (x <= b[i-1] || x > 1.28*b[i-1]) {
			t.Errorf("%v follows %v", x, b[i-1])
		}
		if x < 0.018 {
			below = x
		} else if above == 0 {
			above = x
		}
	}
	if below < 0.0155 || above > 0.0205 {
		t.Errorf("18 ms lies between %v and %v", below, above)
	}
}

// TestHandler: what a registry has and what is asked for at the moment are one page, which
// Prometheus' linter finds nothing in; an error is no page.
func TestHandler(t *testing.T) {
	r := NewRegistry()
	took := prometheus.NewHistogram(Durations("foresay_test_duration_seconds", "How long."))
	r.MustRegister(took)
	took.Observe(0.018)
	failure := errors.New("nobody answers")
	var fails error
	h := Handler(r, func(_ context.Context, p *Page) error {
		for _, s := range []string{"0", "1"} {
			p.Gauge("foresay_test_ready", "Whether.", Flag(s == "1"), "shard", s)
			p.Counter("foresay_test_things_total", "Things.", 7, "shard", s)
		}
		return fails
	})
	code, page := scrape(t, h)
	if code != http.StatusOK {
		t.Fatalf("code %d\n%s", code, page)
	}
	for _, line := range []string{
		`foresay_test_ready{shard="1"} 1`, `foresay_test_things_total{shard="0"} 7`,
		`foresay_test_duration_seconds_bucket{le="0.0158"} 0`,
		`foresay_test_duration_seconds_bucket{le="0.02"} 1`, "foresay_test_duration_seconds_sum 0.018", "go_goroutines ",
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("no line %q:\n%s", line, page)
		}
	}
	metricstest.Check(t, page, "foresay_test_")
	fails = failure
	if code, page := scrape(t, h); code != http.StatusServiceUnavailable || strings.TrimSpace(page) != failure.Error() {
		t.Errorf("code %d, %q", code, page)
	}
}

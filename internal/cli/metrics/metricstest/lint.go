// Package metricstest checks what processes serve to Prometheus.
package metricstest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Check fails if Prometheus' own linter, that of promtool check metrics, finds anything in a page,
// or if a figure of Foresay's does not begin with the family's prefix.
func Check(t testing.TB, page, prefix string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Errorf("the page is no text of Prometheus': %v\n%s", err, page)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	kinds := regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(page, -1)
	own := 0
	for _, k := range kinds {
		switch name := k[1]; {
		case strings.HasPrefix(name, prefix):
			own++
		case !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_"):
			t.Errorf("%s does not begin with %s", name, prefix)
		}
	}
	if own == 0 {
		t.Errorf("nothing begins with %s:\n%s", prefix, page)
	}
}

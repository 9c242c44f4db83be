package oteltest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: docs/telemetry.md names each metric, as Prometheus shows it, and no
// other. TestServerMetrics has those of servers.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `foresay\\..*\\| `(foresay_\\w+)`").FindAllStringSubmatch(string(page),
		-1) {
		documented[m[1]] = true
	}
	series := exported(t)
	for name := range series {
		whole := true
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if histogram, is := strings.CutSuffix(name, part); is && series[histogram] != nil {
				whole = false
			}
		}
		if strings.HasPrefix(name, "foresay_") && whole && !documented[name] {
			t.Errorf("docs/telemetry.md does not name %s", name)
		}
	}
	for name := range documented {
		if series[name] == nil && !strings.HasPrefix(name, "foresay_server_") {
			t.Errorf("docs/telemetry.md names %s, which is not exported", name)
		}
	}
}

package oteltest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/telemetry"
)

// TestRPCMetrics: otelgrpc counts calls on guesses under their method, with the codes
// that ordinary calls would have, and those that were called off.
func TestRPCMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		counts := grpc.WithStatsHandler(telemetry.ClientHandler(
			otelgrpc.NewClientHandler(otelgrpc.WithMeterProvider(m.provider))))
		dial := func(addr string) kvpb.TestKVClient { return kvpb.NewTestKVClient(w.dialWith(addr, counts)) }
		c, f := dial(w.serve("a", kv{})), dial(w.serve("b", failing{}))
		m.request(chain(c, "one", "one", "two"))
		_, err := foresay.Do(m.control.Context(w.Context()), func(ctx context.Context) (string, error) {
			if _, err := get(ctx, c, "one", value("one")); err != nil {
				return "", err
			}
			return get(ctx, f, "two")
		})
		if status.Code(err) != codes.NotFound {
			t.Errorf("got %v, want the server's error", err)
		}
		w.settle()
		want := []string{
			"TestKV/Get CANCELLED 1",
			"TestKV/Get NOT_FOUND 1",
			"TestKV/Get OK 1", // of the other server
			"TestKV/Get OK 4",
		}
		if diff := cmp.Diff(want, m.rpcs()); diff != "" {
			t.Errorf("calls that otelgrpc counted (-want +got):\n%s", diff)
		}
	})
}

// rpcs returns how many client calls otelgrpc counted, by method and code.
func (m *metrics) rpcs() (out []string) {
	m.Helper()
	for _, line := range m.only("rpc_client_call_duration_seconds") {
		label := func(name string) string {
			_, rest, _ := strings.Cut(line, name+"=")
			return strings.Trim(strings.Fields(rest)[0], "}")
		}
		fields := strings.Fields(line)
		method := strings.TrimPrefix(label("rpc_method"), "foresay.testkv.v1.")
		out = append(out, method+" "+label("rpc_response_status_code")+" "+fields[len(fields)-2])
	}
	slices.Sort(out)
	return out
}

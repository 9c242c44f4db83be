package oteltest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/telemetry"
)

// TestServerMetrics: a server's calls are one series by method and attribute, on
// which the first call of all is counted like any other; how long a call takes does
// not include the wait for its caller's word.
func TestServerMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		lis, err := w.net.Listen("b")
		if err != nil {
			w.Fatal(err)
		}
		s := specgrpc.NewServer(grpc.WaitForHandlers(true), specgrpc.WithMaxHalfOpenCalls(2),
			grpc.StatsHandler(telemetry.ServerHandler(
				otelgrpc.NewServerHandler(otelgrpc.WithMeterProvider(m.provider),
					otelgrpc.WithMetricAttributesFn(telemetry.CallAttributes)))))
		kvpb.RegisterTestKVServer(s, kv{})
		if _, err := telemetry.RegisterServer(s, m.meter); err != nil {
			w.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Serve(lis)
		}()
		w.Cleanup(func() {
			s.Stop()
			<-done
		})
		slow := w.dial(w.serve("a", kv{slow: "one"}))
		behind, err := specgrpc.NewClient("passthrough:///"+lis.Addr().String(),
			append(w.bare(), specgrpc.WithMode(control.ModeOn))...)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { behind.Close() })
		behind.Connect()
		time.Sleep(time.Second)
		for range 2 {
			_, err := foresay.Do(m.control.Context(w.Context()), func(ctx context.Context) (string, error) {
				if _, err := get(ctx, slow, "one", value("one")); err != nil {
					return "", err
				}
				return get(ctx, kvpb.NewTestKVClient(behind), "two")
			})
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) // its place is free again
		}
		if _, err := get(w.Context(), kvpb.NewTestKVClient(behind), "three"); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var got []string
		for _, line := range m.scrape() {
			if strings.HasPrefix(line, "rpc_server_call_duration") || strings.HasPrefix(line, "foresay_server") {
				got = append(got, strings.ReplaceAll(line, "foresay.testkv.v1.", ""))
			}
		}
		want := []string{
			"foresay_server_admitted_total{} 2",
			"foresay_server_half_open{} 0",
			"foresay_server_refused_total{reason=caller} 0",
			"foresay_server_refused_total{reason=effects} 0",
			"foresay_server_refused_total{reason=full} 0",
			"foresay_server_refused_total{reason=limit} 0",
			"foresay_server_refused_total{reason=stopping} 0",
			"foresay_server_refused_total{reason=unknown} 0",
			"rpc_server_call_duration_seconds{rpc_method=TestKV/Get rpc_response_status_code=OK rpc_system_name=grpc} 1 0",
			"rpc_server_call_duration_seconds{foresay_speculative=true rpc_method=TestKV/Get rpc_response_status_code=OK " +
				"rpc_system_name=grpc} 2 0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

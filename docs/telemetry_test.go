package docs_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/telemetry"
)

// connect is what docs/telemetry.md shows.
func connect(target string, creds grpc.DialOption, traced stats.Handler) (*specgrpc.ClientConn, error) {
	meter := otel.Meter("shop")
	requests, err := telemetry.Requests(meter)
	if err != nil {
		return nil, err
	}
	ctl, err := control.New(control.Config{
		Tracer:    telemetry.NewTracer(otel.GetTracerProvider()),
		OnRequest: []func(*control.RequestRecord){requests},
	})
	if err != nil {
		return nil, err
	}
	if _, err := telemetry.Register(ctl, meter); err != nil {
		return nil, err
	}
	return specgrpc.NewClient(target, creds, specgrpc.WithControl(ctl),
		grpc.WithStatsHandler(telemetry.ClientHandler(traced)))
}

func TestTelemetrySnippet(t *testing.T) {
	cc, err := connect("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cc.Close(); err != nil {
		t.Error(err)
	}
}

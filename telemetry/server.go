package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/foresay/foresay/specgrpc"
)

const labelReason = attribute.Key("reason")

// RegisterServer makes instruments of what becomes of speculative calls at a server,
// a specgrpc.Server or a specgrpc.ServiceRegistrar, which are read when they are
// collected. Unregister on what it returns ends that. docs/telemetry.md lists them.
func RegisterServer(server interface{ Stats() specgrpc.ServerStats }, meter metric.Meter) (metric.Registration, error) {
	if server == nil || meter == nil {
		return nil, errors.New("telemetry: RegisterServer needs a server and a Meter, and one of them is nil")
	}
	m := &maker{meter: meter}
	halfOpen := m.gauge("foresay.server.half_open", "{call}", "Calls of speculative callers that are under way.")
	admitted := m.count("foresay.server.admitted", "{call}", "Calls of speculative callers that ran.")
	refused := m.count("foresay.server.refused", "{call}", "Calls of speculative callers that were refused, by reason.")
	if m.err != nil {
		return nil, m.err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := server.Stats()
		o.ObserveInt64(halfOpen, int64(s.HalfOpen))
		o.ObserveInt64(admitted, s.Admitted)
		for reason, n := range map[string]int64{
			"effects": s.RefusedEffects, "limit": s.RefusedLimit, "full": s.RefusedFull,
			"caller": s.RefusedCaller, "stopping": s.RefusedStopping, "unknown": s.RefusedUnknown,
		} {
			o.ObserveInt64(refused, n, metric.WithAttributes(labelReason.String(reason)))
		}
		return nil
	}, m.made...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: register the server's instruments: %w", err)
	}
	return registration, nil
}

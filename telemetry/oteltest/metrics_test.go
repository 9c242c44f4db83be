package oteltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/telemetry"
)

// metrics is a control whose metrics the Prometheus exporter shows.
type metrics struct {
	*testing.T
	control  *control.Control
	registry *prom.Registry
	provider metric.MeterProvider
	meter    metric.Meter
	stop     metric.Registration
}

func newMetrics(t *testing.T) *metrics {
	t.Helper()
	m := &metrics{T: t, registry: prom.NewRegistry()}
	exporter, err := otelprom.New(otelprom.WithRegisterer(m.registry), otelprom.WithoutScopeInfo(),
		otelprom.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	m.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	m.meter = m.provider.Meter("test")
	requests, err := telemetry.Requests(m.meter)
	if err != nil {
		t.Fatal(err)
	}
	m.control, err = control.New(control.Config{OnRequest: []func(*control.RequestRecord){requests}})
	if err != nil {
		t.Fatal(err)
	}
	if m.stop, err = telemetry.Register(m.control, m.meter); err != nil {
		t.Fatal(err)
	}
	return m
}

// scrape returns what the exporter shows, a line for each value; of histograms
// how many and the sum.
func (m *metrics) scrape() []string {
	m.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		m.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, v := range f.GetMetric() {
			var labels []string
			for _, l := range v.GetLabel() {
				if !strings.HasPrefix(l.GetName(), "otel_scope") {
					labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), strings.TrimPrefix(l.GetValue(), "/foresay.testkv.v1.")))
				}
			}
			out = append(out, fmt.Sprintf("%s{%s} %s", f.GetName(), strings.Join(labels, " "), shown(v)))
		}
	}
	return out
}

func shown(v *dto.Metric) string {
	switch {
	case v.Counter != nil:
		return fmt.Sprintf("%.3g", v.Counter.GetValue())
	case v.Gauge != nil:
		return fmt.Sprintf("%.3g", v.Gauge.GetValue())
	default:
		return fmt.Sprintf("%d %.3g", v.Histogram.GetSampleCount(), v.Histogram.GetSampleSum())
	}
}

// TestMetrics: what the instruments show is what happened.
func TestMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		c := w.dial(w.serve("a", kv{}))
		m.request(chain(c, "", "one", "two"))
		m.request(chain(c, "", "one", "two", "three"))
		m.request(chain(c, "one", "one", "two"))
		w.settle()
		m.want(
			"foresay_break_even_ratio{site=TestKV/Get} 0.5",
			"foresay_budget_ratio{} 0.1",
			"foresay_calls_total{site=TestKV/Get} 9",
			"foresay_extra_load_ratio{} 0.127",
			"foresay_hit_ratio{site=TestKV/Get} 0.748",
			"foresay_killed{} 0",
			"foresay_observed_total{outcome=right site=TestKV/Get} 0",
			"foresay_observed_total{outcome=wrong site=TestKV/Get} 0",
			"foresay_predictions_total{outcome=right site=TestKV/Get} 3",
			"foresay_predictions_total{outcome=wrong site=TestKV/Get} 1",
			"foresay_request_duration_seconds{arm=none request=/bff.Pages/Page} 3 0.04",
			"foresay_request_lost_seconds{arm=none request=/bff.Pages/Page} 3 0",
			"foresay_request_saved_seconds{arm=none request=/bff.Pages/Page} 3 0.03",
			"foresay_runs_pending{} 0",
			"foresay_saved_seconds_total{site=TestKV/Get} 0.03",
			"foresay_shadows_total{site=TestKV/Get} 0",
			"foresay_site_extra_load_ratio{site=TestKV/Get} 0.127",
			"foresay_site_mode{mode=on site=TestKV/Get} 1",
			"foresay_site_state{site=TestKV/Get state=learning} 1",
			"foresay_site_tripped{site=TestKV/Get} 0",
			"foresay_stalls_total{site=TestKV/Get} 0",
			"foresay_trips_total{site=TestKV/Get} 0",
			"foresay_wasted_calls_total{site=TestKV/Get} 1",
			"foresay_wasted_time_seconds_total{site=TestKV/Get} 0.01",
		)
	})
}

// request runs a task as a request of its own.
func (m *metrics) request(f func(context.Context) (string, error)) {
	m.Helper()
	ctx, request := m.control.Begin(m.Context(), "/bff.Pages/Page", "")
	_, err := foresay.Do(ctx, f)
	request.End(err)
	if err != nil {
		m.Error(err)
	}
}

// settle waits until all is judged.
func (w *world) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (m *metrics) want(want ...string) {
	m.Helper()
	if diff := cmp.Diff(want, m.scrape()); diff != "" {
		m.Errorf("scraped (-want +got):\n%s", diff)
	}
}

// only returns the scraped lines of some metrics.
func (m *metrics) only(names ...string) (out []string) {
	m.Helper()
	for _, line := range m.scrape() {
		if name, _, _ := strings.Cut(line, "{"); slices.Contains(names, name) {
			out = append(out, line)
		}
	}
	return out
}

// TestConnections: sites of one name on several connections are one; what a
// connection counted stays when it is closed.
func TestConnections(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		a := w.dialConn(w.serve("a", kv{}))
		b := w.dialConn(w.serve("b", kv{}))
		observed := []string{"foresay_calls_total", "foresay_site_mode", "foresay_predictions_total"}
		m.request(chain(kvpb.NewTestKVClient(a), "", "one", "two"))
		m.request(chain(kvpb.NewTestKVClient(b), "", "one", "two"))
		if err := m.control.SetMode(kvpb.TestKV_Get_FullMethodName, control.ModeOff, 0); err != nil {
			t.Error(err)
		}
		both := []string{
			"foresay_calls_total{site=TestKV/Get} 6",
			"foresay_predictions_total{outcome=right site=TestKV/Get} 2",
			"foresay_predictions_total{outcome=wrong site=TestKV/Get} 0",
			"foresay_site_mode{mode=off site=TestKV/Get} 2",
		}
		if diff := cmp.Diff(both, m.only(observed...)); diff != "" {
			t.Errorf("scraped with two connections (-want +got):\n%s", diff)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		one := append(slices.Clone(both[:3]), "foresay_site_mode{mode=off site=TestKV/Get} 1")
		for range 2 {
			if diff := cmp.Diff(one, m.only(observed...)); diff != "" {
				t.Errorf("scraped after one was closed (-want +got):\n%s", diff)
			}
		}
	})
}

// TestTripped: a site that does not pay is shown as such, and a kill switch too.
func TestTripped(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		c := w.dial(w.serve("a", kv{}))
		for range 40 {
			m.request(chain(c, "one", "one", "two"))
			time.Sleep(100 * time.Millisecond)
		}
		m.control.Kill(true)
		want := []string{
			"foresay_killed{} 1", "foresay_site_state{site=TestKV/Get state=tripped} 1",
			"foresay_site_tripped{site=TestKV/Get} 1", "foresay_trips_total{site=TestKV/Get} 1",
		}
		if diff := cmp.Diff(want, m.only("foresay_killed", "foresay_site_tripped", "foresay_site_state",
			"foresay_trips_total")); diff != "" {
			t.Errorf("scraped (-want +got):\n%s", diff)
		}
	})
}

// TestLint: Prometheus' own linter, that of promtool check metrics, finds nothing in
// what a service exports.
func TestLint(t *testing.T) {
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		m.request(chain(w.dial(w.serve("a", kv{})), "one", "one", "two"))
		w.settle()
		families, err := m.registry.Gather()
		if err != nil || len(families) == 0 {
			t.Fatalf("%d families, %v", len(families), err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// TestBuckets: a median of 18 ms is seen as one, in classic buckets, and in native ones
// if a view asks for those.
func TestBuckets(t *testing.T) {
	for _, native := range []bool{false, true} {
		registry := prom.NewRegistry()
		exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
		if err != nil {
			t.Fatal(err)
		}
		options := []sdkmetric.Option{sdkmetric.WithReader(exporter)}
		if native {
			options = append(options, sdkmetric.WithView(sdkmetric.NewView(
				sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram},
				sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 5}},
			)))
		}
		requests, err := telemetry.Requests(sdkmetric.NewMeterProvider(options...).Meter("test"))
		if err != nil {
			t.Fatal(err)
		}
		for ms := 10; ms <= 26; ms++ {
			requests(&control.RequestRecord{Name: "page", Duration: time.Duration(ms) * time.Millisecond})
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "foresay_request_duration_seconds" {
				continue
			}
			h := f.GetMetric()[0].GetHistogram()
			if native {
				if h.Schema == nil || h.GetSchema() < 3 || len(h.GetBucket()) > 0 {
					t.Errorf("no native histogram, or a coarse one: schema %v", h.Schema)
				}
				continue
			}
			below := &dto.Bucket{}
			for _, b := range h.GetBucket() {
				if b.GetCumulativeCount() > 8 {
					if below.GetUpperBound() < 0.015 || b.GetUpperBound() > 0.021 {
						t.Errorf("the median of 18 ms lies between %v and %v", below.GetUpperBound(), b.GetUpperBound())
					}
					break
				}
				below = b
			}
		}
	}
}

// TestArms: requests are told apart by kind and side of the canary; of tasks side
// by side the one counts that saved most.
func TestArms(t *testing.T) {
	m := newMetrics(t)
	requests, err := telemetry.Requests(m.meter)
	if err != nil {
		t.Fatal(err)
	}
	task := func(start, end, saved time.Duration) control.TaskRecord {
		return control.TaskRecord{Start: start * time.Millisecond, End: end * time.Millisecond,
			Saved: saved * time.Millisecond}
	}
	for _, r := range []control.RequestRecord{
		{Name: "page", Duration: 100 * time.Millisecond, Arm: control.ArmOff},
		{Name: "page", Duration: 60 * time.Millisecond, Arm: control.ArmOn, Tasks: []control.TaskRecord{task(30, 60, 40),
			task(0, 20, 10), task(10, 15, 3)}},
		{Name: "list", Duration: 10 * time.Millisecond, Tasks: []control.TaskRecord{task(0, 10, -2)}},
	} {
		requests(&r)
	}
	want := []string{
		"foresay_request_duration_seconds{arm=none request=list} 1 0.01",
		"foresay_request_duration_seconds{arm=off request=page} 1 0.1",
		"foresay_request_duration_seconds{arm=on request=page} 1 0.06",
		"foresay_request_lost_seconds{arm=none request=list} 1 0.002",
		"foresay_request_lost_seconds{arm=off request=page} 1 0",
		"foresay_request_lost_seconds{arm=on request=page} 1 0",
		"foresay_request_saved_seconds{arm=none request=list} 1 0",
		"foresay_request_saved_seconds{arm=off request=page} 1 0",
		"foresay_request_saved_seconds{arm=on request=page} 1 0.05",
	}
	if diff := cmp.Diff(want, m.only("foresay_request_duration_seconds", "foresay_request_lost_seconds",
		"foresay_request_saved_seconds")); diff != "" {
		t.Errorf("scraped (-want +got):\n%s", diff)
	}
}

// TestManyKinds: a program that makes up names of requests as it goes does not
// grow without end.
func TestManyKinds(t *testing.T) {
	m := newMetrics(t)
	requests, err := telemetry.Requests(m.meter)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		requests(&control.RequestRecord{Name: fmt.Sprint("request ", i)})
	}
	lines := m.only("foresay_request_duration_seconds")
	if got, want := len(lines), 1001; got != want {
		t.Errorf("%d kinds of requests, want %d", got, want)
	}
	if want := "foresay_request_duration_seconds{arm=none request=other} 100 0"; !slices.Contains(lines, want) {
		t.Errorf("no line %q", want)
	}
}

// TestUnregister: after it nothing is shown; what cannot be registered is refused.
func TestUnregister(t *testing.T) {
	m := newMetrics(t)
	if err := m.stop.Unregister(); err != nil {
		t.Error(err)
	}
	if got := m.scrape(); len(got) != 0 {
		t.Errorf("scraped %q after Unregister", got)
	}
	if _, err := telemetry.Register(nil, m.meter); err == nil {
		t.Error("Register takes a nil Control")
	}
	if _, err := telemetry.Requests(nil); err == nil {
		t.Error("Requests takes a nil Meter")
	}
}

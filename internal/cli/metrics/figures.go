package metrics

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// StatusTimeout bounds the wait for the figures of a request.
const StatusTimeout = time.Second

// NewRegistry returns a registry that has what every process shows of itself: its memory, processor
// time, files, goroutines and build.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector())
	return r
}

// bounds are those of classic histograms of durations, in seconds: ten for each power of ten, from
// 100 µs to 100 s. A quantile read from them is at most an eighth wrong.
func bounds() []float64 {
	var out []float64
	for power := -4; power < 2; power++ {
		for _, digits := range []string{"1", "1.26", "1.58", "2", "2.51", "3.16", "3.98", "5.01", "6.31", "7.94"} {
			// of all floats, the one with the shortest label
			b, err := strconv.ParseFloat(fmt.Sprintf("%se%d", digits, power), 64)
			if err != nil {
				panic(err)
			}
			out = append(out, b)
		}
	}
	return append(out, 100)
}

// Durations describes a histogram of durations in seconds, native to those who scrape native
// histograms, with fine classic buckets for others.
func Durations(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: bounds(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// Handler answers with what a registry has and with the figures of the moment. An error of figures
// is answered as such, with status 503.
func Handler(registry *prometheus.Registry, figures func(context.Context, *Page) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), StatusTimeout)
		defer cancel()
		page := &Page{}
		if err := figures(ctx, page); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		now := prometheus.NewRegistry()
		now.MustRegister(page)
		promhttp.HandlerFor(prometheus.Gatherers{registry, now}, promhttp.HandlerOpts{}).ServeHTTP(w, req)
	})
}

// A Page collects the figures of a moment. Labels are names, each followed by its value.
type Page struct {
	metrics []prometheus.Metric
}

// Gauge adds a figure that goes up and down.
func (p *Page) Gauge(name, help string, value float64, labels ...string) {
	p.add(prometheus.GaugeValue, name, help, value, labels)
}

// Counter adds a figure that only grows; its name ends with _total.
func (p *Page) Counter(name, help string, value uint64, labels ...string) {
	p.add(prometheus.CounterValue, name, help, float64(value), labels)
}

// Histogram adds a histogram of durations: counts has, for each of the bounds in ascending order,
// how many were not longer, and longer than the bound before; and in the last place how many were
// longer than all.
func (p *Page) Histogram(name, help string, bounds []time.Duration, counts []uint64, sum time.Duration,
	labels ...string,
) {
	var seconds []float64
	for _, bound := range bounds {
		seconds = append(seconds, bound.Seconds())
	}
	p.Sizes(name, help, seconds, counts, sum.Seconds(), labels...)
}

// Sizes adds a histogram of numbers: bounds and counts are as in Histogram.
func (p *Page) Sizes(name, help string, bounds []float64, counts []uint64, sum float64, labels ...string) {
	names, values := pairs(labels)
	n, buckets := uint64(0), map[float64]uint64{}
	for i, bound := range bounds {
		n += counts[i]
		buckets[bound] = n
	}
	n += counts[len(bounds)]
	p.metrics = append(p.metrics, prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, names, nil), n,
		sum, buckets, values...))
}

// pairs returns the names and the values of labels.
func pairs(labels []string) (names, values []string) {
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

func (p *Page) add(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	names, values := pairs(labels)
	p.metrics = append(p.metrics, prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value,
		values...))
}

// Describe is part of prometheus.Collector: what there is to tell is known when it is told.
func (p *Page) Describe(chan<- *prometheus.Desc) {}

// Collect is part of prometheus.Collector.
func (p *Page) Collect(to chan<- prometheus.Metric) {
	for _, m := range p.metrics {
		to <- m
	}
}

// Flag returns 1 for true and 0 for false.
func Flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

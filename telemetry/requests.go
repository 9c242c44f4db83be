package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/foresay/foresay/control"
)

// Requests returns a hook for control.Config.OnRequest that records, by kind of
// request and side of the canary, how long requests took, and what their tasks
// saved of that.
func Requests(meter metric.Meter) (func(*control.RequestRecord), error) {
	if meter == nil {
		return nil, errors.New("telemetry: Requests needs a Meter, and it is nil")
	}
	bounds := metric.WithExplicitBucketBoundaries(bounds()...)
	histogram := func(name, what string) (metric.Float64Histogram, error) {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), bounds)
		if err != nil {
			return nil, fmt.Errorf("telemetry: instrument %s: %w", name, err)
		}
		return h, nil
	}
	duration, err := histogram("foresay.request.duration", "How long requests took.")
	if err != nil {
		return nil, err
	}
	saved, err := histogram("foresay.request.saved", "What requests would have taken longer without speculation.")
	if err != nil {
		return nil, err
	}
	lost, err := histogram("foresay.request.lost", "What requests would have taken less without speculation.")
	if err != nil {
		return nil, err
	}
	r := &requests{duration: duration, saved: saved, lost: lost}
	return r.ended, nil
}

// bounds are those of the distributions, in seconds: nothing, and ten for each power
// of ten from 1 ms to 10 s, so that a quantile is at most an eighth wrong. A view of
// the SDK may choose others, or base-2 exponential ones, which are Prometheus' native
// histograms.
func bounds() []float64 {
	out := []float64{0}
	for _, power := range []float64{1000, 100, 10, 1} {
		for _, digits := range []float64{1, 1.26, 1.58, 2, 2.51, 3.16, 3.98, 5.01, 6.31, 7.94} {
			out = append(out, digits/power)
		}
	}
	return append(out, 10)
}

// maxKinds bounds the kinds of requests that are told apart. The rest is "other".
const maxKinds = 1000

type requests struct {
	duration, saved, lost metric.Float64Histogram
	attributes            sync.Map // kind -> metric.MeasurementOption
	kinds                 atomic.Int64
}

// kind is what requests are told apart by.
type kind struct {
	name string
	arm  control.Arm
}

func (r *requests) ended(rec *control.RequestRecord) {
	set := r.attributesOf(kind{rec.Name, rec.Arm})
	ctx, saved := context.Background(), savedBy(rec.Tasks).Seconds()
	r.duration.Record(ctx, rec.Duration.Seconds(), set)
	r.saved.Record(ctx, max(saved, 0), set)
	r.lost.Record(ctx, max(-saved, 0), set)
}

func (r *requests) attributesOf(k kind) metric.MeasurementOption {
	with, ok := r.attributes.Load(k)
	if !ok {
		if k.name != "other" && r.kinds.Add(1) > maxKinds {
			return r.attributesOf(kind{"other", k.arm})
		}
		with, _ = r.attributes.LoadOrStore(k, metric.WithAttributes(labelRequest.String(k.name),
			labelArm.String(armName(k.arm))))
	}
	return with.(metric.MeasurementOption)
}

func armName(a control.Arm) string {
	switch a {
	case control.ArmOff:
		return "off"
	case control.ArmOn:
		return "on"
	default:
		return "none"
	}
}

// savedBy returns what tasks saved. Of tasks that overlap the one counts that
// saved most: what the others saved was waited for anyhow.
func savedBy(tasks []control.TaskRecord) (total time.Duration) {
	tasks = slices.Clone(tasks)
	slices.SortFunc(tasks, func(a, b control.TaskRecord) int { return int(a.Start - b.Start) })
	for i := 0; i < len(tasks); {
		most, end := tasks[i].Saved, tasks[i].End
		for i++; i < len(tasks) && tasks[i].Start < end; i++ {
			most, end = max(most, tasks[i].Saved), max(end, tasks[i].End)
		}
		total += most
	}
	return total
}

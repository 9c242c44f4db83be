package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/foresay/foresay/control"
)

// The attributes of metrics. Their values are few.
const (
	labelCallSite = attribute.Key("site")
	labelOutcome  = attribute.Key("outcome") // right or wrong
	labelMode     = attribute.Key("mode")
	labelState    = attribute.Key("state")
	labelRequest  = attribute.Key("request") // the kind of request
	labelArm      = attribute.Key("arm")     // of the canary: none, off or on
)

// instruments are what is read from a Control. Counters count since the call sites
// were made; call sites of one name on several connections are added up.
type instruments struct {
	calls, predictions, observed, wastedCalls, shadows, trips, stalls metric.Int64ObservableCounter
	saved, wastedTime                                                 metric.Float64ObservableCounter
	extraLoad, budget, callSiteLoad, hitRatio, breakEven              metric.Float64ObservableGauge
	pending, killed, tripped, state, mode                             metric.Int64ObservableGauge
}

// Register makes instruments that are read from the Control's status when they
// are collected. Unregister on what it returns ends that. docs/telemetry.md lists
// them.
func Register(ctl *control.Control, meter metric.Meter) (metric.Registration, error) {
	if ctl == nil || meter == nil {
		return nil, errors.New("telemetry: Register needs a Control and a Meter, and one of them is nil")
	}
	m := &maker{meter: meter}
	in := &instruments{
		calls: m.count("foresay.calls", "{call}", "Calls made, in tasks and in plain code."),
		predictions: m.count("foresay.predictions", "{prediction}",
			"Calls whose prediction was used, by whether it was right."),
		observed: m.count("foresay.observed", "{prediction}",
			"Calls whose prediction was compared and not used, by whether it was right."),
		wastedCalls: m.count("foresay.wasted.calls", "{call}", "Wasted calls, by the site whose prediction was wrong."),
		shadows:     m.count("foresay.shadows", "{run}", "Times that work was started in shadow mode and thrown away."),
		trips:       m.count("foresay.trips", "{trip}", "Times that the site was tripped."),
		stalls: m.count("foresay.stalls", "{task}",
			"Tasks that were stuck, by a defect of Foresay, and went on without speculation."),
		saved:      m.seconds("foresay.saved", "Waits for answers that right predictions spared, which may overlap."),
		wastedTime: m.seconds("foresay.wasted.time", "How long wasted calls took, added up."),
		extraLoad:  m.ratio("foresay.extra_load", "Wasted calls per call that counts, of all sites, lately."),
		budget:     m.ratio("foresay.budget", "The extra load that may be caused."),
		callSiteLoad: m.ratio("foresay.site.extra_load",
			"Wasted calls by the site's predictions per call that counts at all sites, lately."),
		hitRatio:  m.ratio("foresay.hit_ratio", "Share of used predictions that were right, lately."),
		breakEven: m.ratio("foresay.break_even", "The hit ratio above which predictions pay."),
		pending:   m.gauge("foresay.runs.pending", "{run}", "Runs that stand on a guess."),
		killed:    m.gauge("foresay.killed", "", "1 if the kill switch stops all speculation."),
		tripped:   m.gauge("foresay.site.tripped", "", "1 if the site takes no predictions because they did not pay."),
		state:     m.gauge("foresay.site.state", "{connection}", "Connections whose site is in the state."),
		mode:      m.gauge("foresay.site.mode", "{connection}", "Connections whose site is in the mode."),
	}
	if m.err != nil {
		return nil, m.err
	}
	r := &reader{control: ctl, instruments: in, last: make(map[*control.CallSite]control.CallSiteStats),
		gone: make(map[string]control.CallSiteStats)}
	registration, err := meter.RegisterCallback(r.collect, m.made...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: register the instruments: %w", err)
	}
	return registration, nil
}

// maker makes instruments, up to the first error.
type maker struct {
	meter metric.Meter
	made  []metric.Observable
	err   error
}

func made[I metric.Observable](m *maker, name string, instrument I, err error) I {
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("telemetry: instrument %s: %w", name, err)
	}
	m.made = append(m.made, instrument)
	return instrument
}

func (m *maker) count(name, unit, what string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return made(m, name, i, err)
}

func (m *maker) seconds(name, what string) metric.Float64ObservableCounter {
	i, err := m.meter.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(what))
	return made(m, name, i, err)
}

func (m *maker) ratio(name, what string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("1"), metric.WithDescription(what))
	return made(m, name, i, err)
}

func (m *maker) gauge(name, unit, what string) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	return made(m, name, i, err)
}

// collect observes what the Control has to tell now.
func (r *reader) collect(_ context.Context, o metric.Observer) error {
	in, status := r.instruments, r.control.Status()
	o.ObserveFloat64(in.extraLoad, status.ExtraLoad)
	o.ObserveFloat64(in.budget, status.Budget)
	o.ObserveInt64(in.pending, status.Runs)
	o.ObserveInt64(in.killed, number(status.Killed))
	for name, s := range r.counters() {
		site := labelCallSite.String(name)
		all, right, wrong := metric.WithAttributes(site), metric.WithAttributes(site, labelOutcome.String("right")),
			metric.WithAttributes(site, labelOutcome.String("wrong"))
		o.ObserveInt64(in.calls, s.Calls+s.Plain, all)
		o.ObserveInt64(in.predictions, s.Right, right)
		o.ObserveInt64(in.predictions, s.Wrong, wrong)
		o.ObserveInt64(in.observed, s.WouldBeRight, right)
		o.ObserveInt64(in.observed, s.WouldBeWrong, wrong)
		o.ObserveInt64(in.wastedCalls, s.Wasted, all)
		o.ObserveInt64(in.shadows, s.Shadows, all)
		o.ObserveInt64(in.trips, s.Trips, all)
		o.ObserveInt64(in.stalls, s.Stalls, all)
		o.ObserveFloat64(in.saved, float64(s.SavedNanos)/1e9, all)
		o.ObserveFloat64(in.wastedTime, float64(s.WastedNanos)/1e9, all)
	}
	for name, g := range gauges(&status) {
		site := labelCallSite.String(name)
		all := metric.WithAttributes(site)
		if g.judged > 0 {
			o.ObserveFloat64(in.hitRatio, g.hits/g.judged, all)
			o.ObserveFloat64(in.breakEven, g.breakEven/g.judged, all)
		}
		o.ObserveFloat64(in.callSiteLoad, g.extraLoad, all)
		o.ObserveInt64(in.tripped, number(g.states[control.StateTripped] > 0), all)
		for state, n := range g.states {
			o.ObserveInt64(in.state, n, metric.WithAttributes(site, labelState.String(state.String())))
		}
		for mode, n := range g.modes {
			o.ObserveInt64(in.mode, n, metric.WithAttributes(site, labelMode.String(mode.String())))
		}
	}
	return nil
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

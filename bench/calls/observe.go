package calls

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/control"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

// What observed systems are compared with besides plain gRPC: Foresay installed and switched off,
// ungrouped.
const (
	offLatencyRatio = "ratio_to_off"
	offCPURatio     = "cpu_ratio_to_off"
)

func observeOverhead() bench.Experiment {
	return bench.Experiment{
		Name: "observe-overhead",
		Summary: "echoes of 64 bytes and 4 KB, no work, 16 callers: what it costs to observe, and to group calls by " +
			"request (real mode)",
		Modes:   []bench.Mode{bench.Real},
		Measure: measureObservers,
		Figures: observeFigures(),
	}
}

// observer is a way to have Foresay installed without using a prediction.
type observer struct {
	name      string
	mode      control.Mode
	predictor bool // the site has one: the last value by the request's first word
}

func observers() []observer {
	return []observer{
		{"foresay-off", control.ModeOff, true},
		{"foresay-observe", control.ModeObserve, true},
		{"foresay-observe-digest", control.ModeObserve, false},
	}
}

// stack returns the observer's stack, over plain servers, and its Control.
func (o observer) stack() (stack, *control.Control, error) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		return stack{}, nil, err
	}
	ctl, err := control.New(control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
	if err != nil {
		return stack{}, nil, err
	}
	site := control.CallSiteConfig{Name: benchv1.Bench_Work_FullMethodName, Mode: o.mode}
	if o.predictor {
		site.Predictors = []control.Predictor{predict.LastValue(func(r *benchv1.WorkRequest) string {
			return string(r.GetPayload()[:8])
		}, 10_000)}
	}
	s := grpcStack()
	s.name = o.name
	s.dial = func(target string, opts ...grpc.DialOption) (conn, error) {
		return specgrpc.NewClient(target, append(opts, specgrpc.WithCallSites(site), specgrpc.WithControl(ctl))...)
	}
	return s, ctl, nil
}

// sizedPayload is the usual payload, again and again.
func sizedPayload(seed uint64, size int) []byte {
	return bytes.Repeat(firstPayload(seed), size/payloadBytes)
}

// sizedChain makes the calls as ordinary code does, with payloads of a size.
func sizedChain(size int) chainFunc {
	return func(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
		payload := sizedPayload(r.seed, size)
		for i := range r.guesses {
			response, err := c[i%len(c)].Work(ctx, a.request(payload))
			if err != nil {
				return nil, err
			}
			if payload = response.GetPayload(); len(payload) != size {
				return nil, fmt.Errorf("bench: an answer has %d bytes, want %d", len(payload), size)
			}
		}
		return payload[:payloadBytes], nil
	}
}

// grouped makes each chain a request of the Control's.
func grouped(ctl *control.Control, chain chainFunc) chainFunc {
	return func(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
		ctx, req := ctl.Begin(ctx, "GET /bench", "")
		answer, err := chain(ctx, c, a, r)
		req.End(err)
		return answer, err
	}
}

// A way is a stack with what the columns say of it.
type way struct {
	stack              stack
	predictor, grouped string
}

// ways returns all that is compared, for payloads of a size. Plain gRPC comes first.
func ways(size int) ([]way, error) {
	plain := grpcStack()
	plain.variant, plain.chain = variant{bytes: size}, sizedChain(size)
	all := []way{{plain, "none", "no"}}
	for _, o := range observers() {
		s, ctl, err := o.stack()
		if err != nil {
			return nil, err
		}
		predictor := "none"
		if o.predictor {
			predictor = "last"
		}
		s.variant, s.chain = variant{bytes: size}, sizedChain(size)
		all = append(all, way{s, predictor, "no"})
		s.variant, s.chain = variant{bytes: size, grouped: true}, grouped(ctl, s.chain)
		all = append(all, way{s, predictor, "yes"})
	}
	return all, nil
}

// observerTrials are one load in all ways, for each length of chains.
func observerTrials(size int, span time.Duration) ([][]trial, error) {
	all, err := ways(size)
	if err != nil {
		return nil, err
	}
	var groups [][]trial
	for _, calls := range []int{1, chainCalls} {
		var group []trial
		for _, w := range all {
			group = append(group, trial{
				stack: w.stack,
				// again and again: most answers are known
				load: load{callers: clients, calls: calls, perCaller: 2, span: span},
				params: []table.Cell{
					table.Is("bytes", size), table.Is("calls", calls), table.Is("callers", clients),
					table.Is("predictor", w.predictor), table.Is("grouped", w.grouped),
				},
			})
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// measureObservers plays the trials in turns.
func measureObservers(ctx context.Context, w bench.Run) ([]table.Row, error) {
	st := study{top: topology{servers: 1, shared: true}, rounds: bench.Pick(w.Options, 2, 25), ratios: []ratio{cpuRatio}}
	for _, size := range []int{payloadBytes, 4096} {
		groups, err := observerTrials(size, bench.Pick(w.Options, 30*time.Millisecond, 100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		st.groups = append(st.groups, groups...)
	}
	s := newSession(st, w)
	if err := s.real(ctx); err != nil {
		return nil, err
	}
	rows := s.rows()
	at := 0
	for g, group := range s.groups {
		off := s.tally[g][slices.IndexFunc(group, func(t trial) bool { return t.stack.name == "foresay-off" })]
		for i := range group {
			own := s.tally[g][i]
			rows[at] = append(rows[at], table.Measure(offLatencyRatio, own.ratio(off, latencyRatio.of)))
			if v := own.ratio(off, cpuRatio.of); !math.IsNaN(v) {
				rows[at] = append(rows[at], table.Measure(offCPURatio, v))
			}
			at++
		}
	}
	return rows, nil
}

func observeFigures() []figure.Spec {
	var figures []figure.Spec
	for _, y := range []struct{ suffix, title, column string }{
		{"latency", "Mean latency", offLatencyRatio},
		{"cpu", "Processor time", offCPURatio},
	} {
		figures = append(figures, figure.Spec{
			Suffix: y.suffix, Title: y.title + " of a chain of 4 echoes, observed",
			Y: y.column, YLabel: "times that of Foresay switched off", Where: table.Is("calls", chainCalls),
			Across: []string{"system", "predictor", "grouped"}, Ratio: true, Series: []string{"bytes"},
		})
	}
	return figures
}

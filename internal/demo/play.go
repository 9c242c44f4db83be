// Package demo plays the purchases of SpecRPC's Figure 3, plainly and with
// Foresay, over real gRPC connections with the delays of a wide-area network.
//
// A client asks the analysis server for a user's interests (GetPI), for which
// that server asks the data server for the user's history (GetPH); it asks for
// what the users who share these interests buy (GetAI), computes, and buys.
// [SpecRPC §2.2]
package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/wan/shape"
)

// Options say how much is played.
type Options struct {
	Users     int // who buy at the same time
	Purchases int // of each user, one after the other
	Stale     int // users of whom the data server's replica is out of date, so that it predicts wrongly
	Seed      uint64
	// Progress is told of each finished purchase, if set. It may be called concurrently.
	Progress func(doing string, done, total int)

	control *control.Control // of all connections, if set
	keep    int              // how many purchases of a user the servers keep; 0: all
	lag     int              // how many a stale replica lacks; 0: two
}

// Result is what the demo found.
type Result struct {
	Rows []Row `json:"rows"`
	// Report is what happened in one of Foresay's purchases.
	Report *report.Report `json:"-"`
}

// Row is one system's figures.
type Row struct {
	System      string  `json:"system"`
	Purchases   int     `json:"purchases"`
	MeanMs      float64 `json:"mean_ms"`
	P50Ms       float64 `json:"p50_ms"`
	P99Ms       float64 `json:"p99_ms"`
	RatioMean   float64 `json:"ratio_to_plain"`
	Predicted   int64   `json:"predicted_calls"`
	HitPercent  float64 `json:"hit_percent"`
	WastedCalls int64   `json:"wasted_calls"`
}

// ErrDiffers is wrapped by the error of a demo whose two runs had other results.
var ErrDiffers = errors.New("the results with Foresay differ from the plain ones")

// Play plays the purchases plainly and with Foresay, and compares their results.
func Play(ctx context.Context, o Options) (*Result, error) {
	plain, err := play(ctx, o, true)
	if err != nil {
		return nil, fmt.Errorf("demo: plain: %w", err)
	}
	spec, err := play(ctx, o, false)
	if err != nil {
		return nil, fmt.Errorf("demo: with Foresay: %w", err)
	}
	if err := differ(plain, spec); err != nil {
		return nil, err
	}
	p, s := plain.row("grpc"), spec.row("foresay")
	p.RatioMean, s.RatioMean = 1, s.MeanMs/p.MeanMs
	return &Result{Rows: []Row{p, s}, Report: spec.report}, nil
}

// played is one system's run.
type played struct {
	mu        sync.Mutex
	times     []time.Duration
	bought    map[string][]*demov1.BuyRequest // by user, in order
	numbers   map[string][]uint32
	histories map[string]*demov1.GetPHResponse
	sites     []*control.CallSite
	report    *report.Report
}

func play(ctx context.Context, o Options, plain bool) (*played, error) {
	w, err := newWorld(o, plain, o.Seed)
	if err != nil {
		return nil, err
	}
	defer w.close()
	p := &played{bought: map[string][]*demov1.BuyRequest{}, numbers: map[string][]uint32{},
		histories: map[string]*demov1.GetPHResponse{}, sites: w.sites}
	if err := w.warm(ctx); err != nil {
		return nil, err
	}
	doing := "plain gRPC"
	if !plain {
		doing = "Foresay"
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range o.Users {
		g.Go(func() error {
			for n := range o.Purchases {
				if err := p.buy(ctx, w, o, user(i), n); err != nil {
					return fmt.Errorf("%s, purchase %d: %w", user(i), n+1, err)
				}
				if o.Progress != nil {
					p.mu.Lock()
					done := len(p.times)
					p.mu.Unlock()
					o.Progress(doing, done, o.Users*o.Purchases)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := range o.Users {
		p.histories[user(i)] = w.data.history(user(i), false)
	}
	return p, nil
}

// warm has the connections opened before anything is timed.
func (w *world) warm(ctx context.Context) error {
	_, err := w.analysis.GetPI(ctx, &demov1.GetPIRequest{User: "nobody"})
	if err == nil {
		_, err = w.shop.Buy(ctx, &demov1.BuyRequest{User: "nobody", Purchase: item(0)})
	}
	return err
}

// buy makes one purchase and notes its time and result.
func (p *played) buy(ctx context.Context, w *world, o Options, u string, n int) error {
	start := time.Now()
	// In a plain world the connections are plain, and this is a plain call.
	req, resp, err := w.purchase(ctx, u, func(r *report.Report) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n > 0 && u == user(o.Users-1) { // one whose predictions are right
			p.report = r
		}
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = append(p.times, time.Since(start))
	p.bought[u] = append(p.bought[u], req)
	p.numbers[u] = append(p.numbers[u], resp.GetNumber())
	return nil
}

// order is a purchase that was made.
type order struct {
	req  *demov1.BuyRequest
	resp *demov1.BuyResponse
}

// purchase is the user's program: ordinary, sequential code. Only foresay.Do
// around it says that its calls may be predicted.
func (w *world) purchase(
	ctx context.Context, u string, report func(*report.Report),
) (*demov1.BuyRequest, *demov1.BuyResponse, error) {
	o, err := foresay.Do(ctx, func(ctx context.Context) (order, error) {
		pi, err := w.analysis.GetPI(ctx, &demov1.GetPIRequest{User: u})
		if err != nil {
			return order{}, err
		}
		ai, err := w.analysis.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
		if err != nil {
			return order{}, err
		}
		best, err := choose(ctx, ai)
		if err != nil {
			return order{}, err
		}
		req := &demov1.BuyRequest{User: u, Purchase: best}
		resp, err := w.shop.Buy(ctx, req)
		return order{req, resp}, err
	}, foresay.WithName("purchase of "+u), foresay.WithReport(report))
	return o.req, o.resp, err
}

// choose is the client's own work.
func choose(ctx context.Context, ai *demov1.GetAIResponse) (*demov1.Purchase, error) {
	if err := shape.Pause(ctx, compute); err != nil {
		return nil, err
	}
	if len(ai.GetPopular()) == 0 {
		return nil, errors.New("nothing to buy")
	}
	best := ai.GetPopular()[0]
	return &demov1.Purchase{Item: best.GetItem(), Interest: best.GetInterest(), PriceCents: best.GetPriceCents()}, nil
}

// differ compares what was bought and what the servers recorded.
func differ(a, b *played) error {
	for u, want := range a.bought {
		got := b.bought[u]
		if !slices.EqualFunc(want, got, func(x, y *demov1.BuyRequest) bool {
			return proto.Equal(x, y)
		}) || !slices.Equal(a.numbers[u], b.numbers[u]) {
			return fmt.Errorf("demo: %w: %s bought %v %v, plainly %v %v", ErrDiffers, u, got, b.numbers[u], want, a.numbers[u])
		}
		if !proto.Equal(a.histories[u], b.histories[u]) {
			return fmt.Errorf("demo: %w: the history of %s is %v, plainly %v", ErrDiffers, u, b.histories[u], a.histories[u])
		}
	}
	return nil
}

func (p *played) row(system string) Row {
	slices.Sort(p.times)
	var sum time.Duration
	for _, t := range p.times {
		sum += t
	}
	r := Row{System: system, Purchases: len(p.times), MeanMs: ms(sum) / float64(len(p.times)),
		P50Ms: ms(quantile(p.times, 0.5)), P99Ms: ms(quantile(p.times, 0.99))}
	var right, wrong int64
	for _, s := range p.sites {
		st := s.Stats()
		right, wrong = right+st.Right, wrong+st.Wrong
		r.WastedCalls += st.Abandoned
	}
	r.Predicted = right + wrong
	if r.Predicted > 0 {
		r.HitPercent = 100 * float64(right) / float64(r.Predicted)
	}
	return r
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

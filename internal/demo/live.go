package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/control"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/wan/shape"
)

// LiveOptions say what Live plays. The zero value of a field is its default.
type LiveOptions struct {
	Users int           // who buy at the same time. Default 8
	Think time.Duration // how long a user pauses before buying again. Default 200 ms
	Seed  uint64
	// Calm is for how long users seldom change their minds, Fickle for how long they
	// often do after that while the data server's replica lags, and so on.
	// Predictions are wrong then. Default 50 s and 30 s.
	Calm, Fickle time.Duration
	Logger       *slog.Logger // of the Control. Default: nobody
}

// Live is the demo's world in which users go on buying, in real time. Its
// Control and Collector are there to be looked at.
type Live struct {
	Control   *control.Control
	Collector *observe.Collector
	o         LiveOptions
	world     *world
	fickle    atomic.Bool
}

const (
	// kept is how many purchases of a user the servers keep: this goes on for hours.
	kept = 12
	// changed is how many of them are others when a user's mind has changed, and how
	// many the replica lags.
	changed = 8
)

// How probably a user's mind has changed before a purchase.
const (
	seldom = 0.04
	often  = 0.9
)

// NewLive opens the world. Run must be called, which closes it.
func NewLive(o LiveOptions) (*Live, error) {
	if o.Users == 0 {
		o.Users = 8
	}
	if o.Think == 0 {
		o.Think = 200 * time.Millisecond
	}
	if o.Calm == 0 {
		o.Calm = 50 * time.Second
	}
	if o.Fickle == 0 {
		o.Fickle = 30 * time.Second
	}
	l := &Live{o: o}
	var err error
	if l.Collector, err = observe.NewCollector(observe.Config{}); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if l.Control, err = control.New(control.Config{
		OnRequest: []func(*control.RequestRecord){l.Collector.Record}, Logger: o.Logger,
	}); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if l.world, err = newWorld(Options{Users: o.Users, control: l.Control, keep: kept, lag: changed}, false,
		o.Seed); err != nil {
		return nil, err
	}
	// Half of the purchases are made without predictions, to compare.
	for _, site := range []string{demov1.AnalysisService_GetPI_FullMethodName,
		demov1.AnalysisService_GetAI_FullMethodName} {
		if err := l.Control.SetMode(site, control.ModeCanary, 0.5); err != nil {
			l.world.close()
			return nil, fmt.Errorf("demo: %w", err)
		}
	}
	return l, nil
}

// Run has the users buy until ctx is done, which is no error.
func (l *Live) Run(ctx context.Context) error {
	defer l.world.close()
	if err := l.world.warm(ctx); err != nil {
		return ended(ctx, fmt.Errorf("demo: %w", err))
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range l.o.Users {
		g.Go(func() error { return l.shop(ctx, i) })
	}
	g.Go(func() error {
		for {
			if shape.Pause(ctx, l.o.Calm) != nil {
				return nil
			}
			l.fickle.Store(true)
			l.world.data.allStale(true)
			if shape.Pause(ctx, l.o.Fickle) != nil {
				return nil
			}
			l.fickle.Store(false)
			l.world.data.allStale(false)
		}
	})
	return ended(ctx, g.Wait())
}

// ended tells a failure from the end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return err
}

// shop is one user's life.
func (l *Live) shop(ctx context.Context, i int) error {
	u := user(i)
	luck := rand.New(rand.NewPCG(l.o.Seed, uint64(i)))
	for n := 1; ; n++ {
		if shape.Pause(ctx, time.Duration((0.5+luck.Float64())*float64(l.o.Think))) != nil {
			return nil
		}
		p := seldom
		if l.fickle.Load() {
			p = often
		}
		if luck.Float64() < p {
			l.world.data.change(u, luck.IntN(len(interests)))
		}
		inRequest, r := l.Control.Begin(ctx, "/demo.Web/Purchase", fmt.Sprintf("%s-%d", u, n))
		_, _, err := l.world.purchase(inRequest, u, nil)
		r.End(err)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("demo: %s, purchase %d: %w", u, n, err)
		}
	}
}

// allStale has all users' replicas fall behind, or catch up.
func (d *dataServer) allStale(stale bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for u := range d.histories {
		d.stale[u] = stale
	}
}

// change has a user take to something: what was bought elsewhere shows it.
func (d *dataServer) change(u string, interest int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.histories[u]
	for range changed {
		h = append(h, item(interest))
	}
	d.histories[u] = h[max(0, len(h)-d.keep):]
}

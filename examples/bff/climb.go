package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/foresay/foresay/observe"
)

// config says what is run.
type config struct {
	requests     int
	rate         float64 // requests per second
	seed         uint64
	callSiteFile string // "": one of the rung's own
	debug        string // address of the debug endpoint, "": none
	report       string // file for what was observed, "": none
}

// result is what the load on a rung came to.
type result struct {
	rung    rung
	answers []answer
	verdict verdict
	calls   int64 // that the services began to serve
	needed  int64 // that plain execution makes
	report  *observe.Report
}

// climb runs the load on one rung, with services, a front and data of its own,
// and checks all answers.
func climb(ctx context.Context, n network, r rung, cfg config) (*result, error) {
	file, remove, err := cfg.modes(r)
	if err != nil {
		return nil, err
	}
	defer remove()
	s, err := startServices(n, cfg.seed, r.prepared)
	defer s.stop()
	if err != nil {
		return nil, err
	}
	f, err := r.start(n, s, file)
	if err != nil {
		return nil, cmp.Or(err, f.stop())
	}
	res, err := f.load(ctx, n, s, r, cfg)
	return res, cmp.Or(err, f.stop())
}

// modes returns the site file of a rung. It writes one if there is none.
func (cfg config) modes(r rung) (path string, remove func(), err error) {
	remove = func() {}
	if !r.prepared {
		return "", remove, nil
	}
	if path = cfg.callSiteFile; path == "" {
		dir, err := os.MkdirTemp("", "bff")
		if err != nil {
			return "", remove, err
		}
		path, remove = filepath.Join(dir, "sites.json"), func() { _ = os.RemoveAll(dir) }
	} else if _, err := os.Stat(path); err == nil {
		return path, remove, nil
	}
	return path, remove, os.WriteFile(path, []byte(r.callSiteFile()), 0o600)
}

// load drives the front.
func (f *front) load(ctx context.Context, n network, s *services, r rung, cfg config) (*result, error) {
	if cfg.debug != "" {
		stop, err := f.serveDebug(cfg.debug)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	client := newClient(n)
	defer client.CloseIdleConnections()
	res := &result{rung: r}
	requests := workload(cfg.seed, cfg.requests, cfg.rate)
	res.answers = drive(ctx, client, f.address, s.backend.data, requests)
	var err error
	if res.verdict, err = s.backend.data.check(res.answers); err != nil {
		return nil, fmt.Errorf("rung %s: %w", r.name, err)
	}
	res.calls = s.backend.calls.Load()
	for _, a := range res.answers {
		res.needed += 2
		if a.page.Offer != nil {
			res.needed += 3
		}
	}
	if f.foresay != nil {
		res.report = f.foresay.Collector().Report(f.foresay.Control())
	}
	if cfg.debug != "" {
		<-ctx.Done() // for those who look at the endpoint
	}
	return res, nil
}

// quantile returns the latency below which a share of the answers lies.
func (r *result) quantile(share float64) time.Duration {
	if len(r.answers) == 0 {
		return 0
	}
	took := make([]time.Duration, len(r.answers))
	for i, a := range r.answers {
		took[i] = a.took
	}
	slices.Sort(took)
	return took[min(int(share*float64(len(took))), len(took)-1)]
}

func (r *result) mean() time.Duration {
	sum := time.Duration(0)
	for _, a := range r.answers {
		sum += a.took
	}
	return sum / time.Duration(max(len(r.answers), 1))
}

// extraLoad is how many calls were made in vain, per call that counts, as the
// services saw it.
func (r *result) extraLoad() float64 { return float64(r.calls-r.needed) / float64(max(r.needed, 1)) }

// foreseen is how much less a request would take on average, as observed.
func (r *result) foreseen() time.Duration {
	for _, q := range r.report.Requests {
		if q.Name == pageName {
			return time.Duration(q.Foreseen.SavedMS * float64(time.Millisecond))
		}
	}
	return 0
}

// pageName is the name of the requests for pages in reports.
const pageName = "GET /page"

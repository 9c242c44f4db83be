package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

func smrIdle() bench.Experiment {
	return bench.Experiment{
		Name: "smr-idle",
		Summary: "services of three processes whose 1, 64 or 512 groups have nothing to do: the servers' processor time " +
			"per second",
		Modes:   []bench.Mode{bench.Real},
		Measure: bench.Points(idlePoints),
		Figures: []figure.Spec{{
			Suffix: "cpu", Title: "Three processes whose groups have nothing to do", Y: "cpu_ms_per_s",
			YLabel: "milliseconds of processor time per second",
			Across: []string{"system"}, Series: []string{"groups"},
		}},
	}
}

// idlePoints are the protocols with one, 64 and 512 groups.
func idlePoints(o bench.Options) []bench.Point {
	var points []bench.Point
	protocols := catalog.Protocols()
	if o.Quick {
		protocols = protocols[:1]
	}
	for _, p := range protocols {
		for _, n := range bench.Pick(o, []int{1, 512}, []int{1, 64, 512}) {
			points = append(points, bench.Point{Doing: fmt.Sprintf("%s, %d groups", p.Name, n),
				Run: func(ctx context.Context) ([]table.Row, error) {
					if o.Program == "" {
						return nil, bench.ErrNoProgram
					}
					return idleRow(ctx, o, p, n)
				}})
		}
	}
	return points
}

func idleRow(ctx context.Context, o bench.Options, p smr.Protocol, groups int) (rows []table.Row, err error) {
	err = bench.WithTempDir(func(dir string) error {
		g, err := startServed(ctx, o.Program, dir, service.Config{Protocol: p.Name, RoundTrip: snapshotsRoundTrip,
			Routing: service.Routing{Groups: groups}})
		if err != nil {
			return err
		}
		defer g.close()
		rests := "-" // one group alone beats as often as its process would for all
		if groups == 1 {
			err = errors.Join(g.all(ctx, func(one service.Status) bool { return one.Ready }),
				g.wait(ctx, bench.Pick(o, time.Second, 5*time.Second)))
		} else {
			rests = "yes"
			if err = g.all(ctx, func(one service.Status) bool { return one.Resting }); errors.Is(err, errNotAll) {
				rests, err = "no", nil
			}
		}
		if err != nil {
			return err
		}
		began, used := time.Now(), g.servers.CPU()
		if err := g.wait(ctx, bench.Pick(o, 3*time.Second, 10*time.Second)); err != nil {
			return err
		}
		spent := g.servers.CPU() - used
		rows = []table.Row{{table.Is("system", p.Name), table.Is("groups", groups), table.Is("rests", rests),
			table.Measure("cpu_ms_per_s", table.Ms(spent)/time.Since(began).Seconds())}}
		return nil
	})
	return rows, err
}

var errNotAll = errors.New("after a minute it does not hold of all replicas")

// all waits until something holds of every replica of every group.
func (s *served) all(ctx context.Context, holds func(service.Status) bool) error {
	const looks = 30 // with hundreds of groups each is some work for the servers
	for range looks {
		all, err := s.client.Status(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(one service.Status) bool { return !holds(one) }) {
			return nil
		}
		if err := s.wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return errNotAll
}

// wait lets time pass, unless a server ends.
func (s *served) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.servers.Context().Done():
		return context.Cause(s.servers.Context())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package geostore

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

func replaceExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-replace",
		Summary: "48 clients write to a store of three processes, one of which leaves in order, and a new one copies " +
			"what the others have and takes part: commits, errors, processor time and memory by second",
		Modes:   []bench.Mode{bench.Real},
		Bubbles: true,
		Measure: replaceSite,
		Figures: []figure.Spec{
			{
				Suffix: "commits", Title: "A site is replaced: commits", X: "second", XLabel: "seconds",
				Y: "commits_per_s", YLabel: "commits per second", Series: []string{"phase"},
			},
		},
	}
}

// replaceSite has a site replaced under load. Its phases after "up" last until the sites go on in
// the next epoch, without the one that leaves; until the new one has copied what they have, and is
// admitted; and some time longer.
func replaceSite(ctx context.Context, w bench.Run) (rows []table.Row, err error) {
	if w.Program == "" {
		return nil, bench.ErrNoProgram
	}
	err = bench.WithTempDir(func(dir string) error {
		store, err := startRivalStore(ctx, w.Program, dir, rivalOptions{roundTrip: awayRoundTrip, retain: awayRetain})
		if err != nil {
			return err
		}
		defer store.close()
		operator, err := storeservice.Dial(store.files.client, storeservice.ClientOptions{})
		if err != nil {
			return err
		}
		defer operator.Close()
		w.Step(0, 1, "waiting for the store")
		if err := store.load(ctx, peersClients); err != nil {
			return err
		}
		m := &awayRun{name: "replaced", store: store, Run: w, keys: bench.Pick(w.Options, awayQuickKeys, awayKeys)}
		r := replacement{store: store, operator: operator, program: w.Program}
		rows, err = m.run(ctx, []awayPhase{
			{"warm", awayWarm, func() error { return nil }},
			{"up", bench.Pick(w.Options, 8, 20), func() error { return nil }},
			{"leaves", bench.Pick(w.Options, 5, 10), func() error { return r.leave(ctx) }},
			{"copies", 5, func() error { return r.enter(ctx) }},
			{"replaced", bench.Pick(w.Options, 10, 30), func() error { return nil }},
		})
		return err
	})
	return append(rows, awayWorst(rows, nil)...), err
}

// replacement puts a new site in the place of the last one.
type replacement struct {
	store    rival
	operator *storeservice.Client
	program  string
}

// leave has the sites agree on the epoch without the old site. Its process ends by itself.
func (r *replacement) leave(ctx context.Context) error {
	by, err := newRivalSite(peersServers + 1)
	if err != nil {
		return err
	}
	old := r.store.files.client.Store
	next, err := old.Replaced(old.Sites[awayGone].Name, by)
	if err != nil {
		return err
	}
	r.store.servers.MayEnd(awayGone)
	if next, err = r.operator.Change(ctx, next, "", func(string, ...any) {}); err != nil {
		return err
	}
	if err := r.store.files.write(storeconfig.StoreFile, next); err != nil {
		return err
	}
	return r.store.files.addMachine(by.Name)
}

// enter starts the new site, and returns when it takes part.
func (r *replacement) enter(ctx context.Context) error {
	file := r.store.files.machines[peersServers]
	if err := r.store.servers.StartMachine(r.program, file); err != nil {
		return err
	}
	const patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		statuses := r.operator.Status(ctx)
		if storeservice.Ready(statuses) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the new site is not admitted: %s: %w", storeservice.Complaints(statuses), context.Cause(ctx))
		}
	}
}

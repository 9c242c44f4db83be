package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/foresay/foresay/wan/shape"
)

// ladder climbs from rung to rung, with equal data, latencies and requests on
// each, and compares them.
func ladder(ctx context.Context, n network, cfg config, out io.Writer) error {
	all, err := climbAll(ctx, n, cfg, "plain", "observe", "canary", "on")
	if err != nil {
		return err
	}
	writeTable(out, all)
	plain, observed, on := all[0], all[1], all[3]
	foreseen, realised := observed.foreseen(), observed.mean()-on.mean()
	fmt.Fprintf(out, "\nforeseen by observe: %s ms per request; saved by on: %s ms, %.0f%% of that\n",
		ms(foreseen), ms(realised), 100*float64(realised)/float64(foreseen))
	fmt.Fprintf(out, "p50 of on: %.2f of plain\n", float64(on.quantile(0.5))/float64(plain.quantile(0.5)))
	return nil
}

// climbAll climbs the named rungs.
func climbAll(ctx context.Context, n network, cfg config, names ...string) (all []*result, err error) {
	for _, r := range rungs() {
		for _, name := range names {
			if r.name != name {
				continue
			}
			res, err := climb(ctx, n, r, cfg)
			if err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			all = append(all, res)
		}
	}
	return all, nil
}

// one stays on one rung, and tells what was observed there.
func one(ctx context.Context, r rung, cfg config, out io.Writer) error {
	res, err := climb(ctx, shape.Undelayed{}, r, cfg)
	if err != nil {
		return err
	}
	writeTable(out, []*result{res})
	if res.report == nil {
		return nil
	}
	fmt.Fprintln(out)
	if err := res.report.WriteText(out); err != nil {
		return err
	}
	if cfg.report == "" {
		return nil
	}
	body, err := json.MarshalIndent(res.report, "", "  ")
	return cmp.Or(err, os.WriteFile(cfg.report, append(body, '\n'), 0o644))
}

// ms writes a time in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// writeTable compares the rungs with the first of them.
func writeTable(w io.Writer, all []*result) {
	fmt.Fprintf(w, "%-8s %8s %8s %8s %8s %8s  %10s  %6s  %9s  %5s\n",
		"rung", "requests", "p50 ms", "p95 ms", "mean ms", "saved ms", "extra load", "same", "meanwhile", "views")
	for i, r := range all {
		saved := "-"
		if i > 0 {
			saved = ms(all[0].mean() - r.mean())
		}
		fmt.Fprintf(w, "%-8s %8d %8s %8s %8s %8s  %9.1f%%  %6d  %9d  %5d\n", r.rung.name, len(r.answers),
			ms(r.quantile(0.5)), ms(r.quantile(0.95)), ms(r.mean()), saved, 100*r.extraLoad(),
			r.verdict.same, r.verdict.meanwhile, r.verdict.views)
	}
}

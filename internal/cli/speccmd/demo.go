// Package speccmd has the commands about speculative calls: demo, dash, analyze and report.
package speccmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"text/tabwriter"

	"github.com/foresay/foresay/dash"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/demo"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Commands returns the commands.
func Commands(p *command.Program) []*cobra.Command {
	q := &program{p}
	return []*cobra.Command{q.demoCommand(), q.dashCommand(), q.analyzeCommand(), q.reportCommand()}
}

type demoFlags struct {
	json bool
	svg  string
	seed uint64
	dash bool
	page command.PageFlags
}

func (p *program) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play purchases over a wide-area network, plainly and with Foresay",
		Long: `Start a data server and an analysis server with the round-trip times of a wide-area network
between them and a client, all in this process over real gRPC, and play purchases of several
users: first plainly, then with Foresay, some of whose predictions are wrong. The results of both
must be equal, or the demo fails. It takes about ten seconds.

With --dash the users go on buying, with Foresay, in real time and until they are interrupted, and
the dashboard shows what that does. Every second purchase is made with predictions. At times the
users change their minds often, and predictions are wrong.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c.Flags().Changed); err != nil {
				return err
			}
			if f.dash {
				return p.runLiveDemo(c.Context(), f)
			}
			return p.demo(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "write the table as JSON")
	flags.StringVar(&f.svg, "svg", "", "write the timeline of one purchase as a picture to this `file`")
	flags.Uint64Var(&f.seed, "seed", 1, "fixes what chance decides")
	flags.BoolVar(&f.dash, "dash", false, "play on, and serve the dashboard of what happens")
	f.page.Add(flags)
	return c
}

// check refuses flags of the demo that ends beside those of the one that goes on.
func (f *demoFlags) check(given func(name string) bool) error {
	for _, name := range []string{"listen", "open"} {
		if !f.dash && given(name) {
			return command.Usagef("demo: --%s is for --dash", name)
		}
	}
	for _, name := range []string{"json", "svg"} {
		if f.dash && given(name) {
			return command.Usagef("demo: --%s is not for --dash, which plays on and on", name)
		}
	}
	return nil
}

func (p *program) demo(ctx context.Context, f demoFlags) error {
	var svg *os.File
	if f.svg != "" {
		var err error
		if svg, err = os.Create(f.svg); err != nil { // before the work, not after it
			return fmt.Errorf("demo: --svg: %w", err)
		}
		defer svg.Close()
	}
	if !f.json {
		fmt.Fprintln(p.Out, "6 users make 5 purchases each. A purchase asks the analysis server (60 ms away) for the "+
			"user's interests,")
		fmt.Fprintln(p.Out, "for which that server asks the data server (40 ms away); then for what the users who share "+
			"them buy; it")
		fmt.Fprintln(p.Out, "computes for 30 ms, and buys (80 ms away). Two users' data are out of date where predictions "+
			"come from.")
		fmt.Fprintln(p.Out)
	}
	bar := command.NewProgress(p.Err)
	var mu sync.Mutex
	o := demo.Options{Users: 6, Purchases: 5, Stale: 2, Seed: f.seed, Progress: func(doing string, done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if doing == "Foresay" {
			done += total
		}
		bar.Report(bench.Progress{Experiment: "demo", Doing: doing, Done: done, Total: 2 * total})
	}}
	result, err := demo.Play(ctx, o)
	bar.Clear()
	if err != nil {
		return err
	}
	if svg != nil {
		if err := result.Report.WriteSVG(svg); err != nil {
			return fmt.Errorf("demo: --svg %s: %w", f.svg, err)
		}
	}
	w := bufio.NewWriter(p.Out)
	if f.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(result); err != nil {
			return fmt.Errorf("demo: --json: %w", err)
		}
		return w.Flush()
	}
	if err := writeDemo(w, result); err != nil {
		return err
	}
	if f.svg != "" {
		fmt.Fprintf(w, "\nThe timeline as a picture: %s\n", f.svg)
	}
	return w.Flush()
}

func writeDemo(w io.Writer, r *demo.Result) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "system\tpurchases\tmean ms\tp50 ms\tp99 ms\tratio\tpredicted calls\thit rate\twasted calls\t")
	for _, row := range r.Rows {
		predicted, hit, wasted := "-", "-", "-"
		if row.System != "grpc" {
			predicted, hit, wasted = fmt.Sprint(row.Predicted), fmt.Sprintf("%.0f %%", row.HitPercent),
				fmt.Sprint(row.WastedCalls)
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.2f\t%s\t%s\t%s\t\n", row.System, row.Purchases, row.MeanMs, row.P50Ms,
			row.P99Ms, row.RatioMean, predicted, hit, wasted)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBoth made the same %d purchases, and the servers recorded the same histories.\n\nOne purchase "+
		"with Foresay:\n\n", r.Rows[0].Purchases)
	if err := r.Report.WriteTimeline(w, 100); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nWhere to look next:")
	fmt.Fprintln(w, "  internal/demo/play.go                    the purchase: ordinary sequential code")
	fmt.Fprintln(w, "  docs/guide.md                            from an ordinary two-service program to a speculative one")
	fmt.Fprintln(w, "  go run ./cmd/foresay bench chain         how much it gains, by how often predictions are right")
	fmt.Fprintln(w, "  go run ./cmd/foresay demo --svg FILE     the timeline above as a picture")
	return nil
}

// runLiveDemo plays the demo on and on beside its dashboard.
func (p *program) runLiveDemo(ctx context.Context, f demoFlags) error {
	live, err := demo.NewLive(demo.LiveOptions{Seed: f.seed})
	if err != nil {
		return err
	}
	page := dash.Handler(dash.Config{
		Control: live.Control, Collector: live.Collector, Name: "demo",
		Authorize: func(*http.Request) error { return nil }, // who plays with it may
	})
	fmt.Fprintln(p.Out, "8 users buy and buy, over real gRPC between three sites of a wide-area network in this "+
		"process, every second")
	fmt.Fprintln(p.Out, "purchase with predictions. For 30 s of every 80 they often change their minds, and "+
		"predictions are wrong.")
	fmt.Fprintln(p.Out, "Interrupt to end it.")
	f.page.Risk = "whoever opens it can switch the demo"
	return p.ServePage(ctx, f.page, page, live.Run)
}

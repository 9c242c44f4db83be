package speccmd

import (
	"context"
	"fmt"
	"net/http"

	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/internal/demo"
)

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
	fmt.Fprintln(p.Out, "8 users buy and buy, over real gRPC between three sites of a wide-area network in this process, every second")
	fmt.Fprintln(p.Out, "purchase with predictions. For 30 s of every 80 they often change their minds, and predictions are wrong.")
	fmt.Fprintln(p.Out, "Interrupt to end it.")
	f.page.Risk = "whoever opens it can switch the demo"
	return p.ServePage(ctx, f.page, page, live.Run)
}

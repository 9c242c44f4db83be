package planning

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
)

// Wanted is what the flags that both plan commands have ask for.
type Wanted struct {
	check     bool
	perClient bool
	json      bool
	svg       string
}

// Flags declares them.
func (w *Wanted) Flags(flags *pflag.FlagSet) {
	flags.BoolVar(&w.perClient, "per-client", false, "also tell what each client gets")
	flags.BoolVar(&w.check, "check", false, "run the protocols in the simulator, and compare")
	flags.BoolVar(&w.json, "json", false, "write JSON")
	flags.StringVar(&w.svg, "svg", "", "also draw a picture to this `file`")
}

// A Plan is what a model says of some protocols.
type Plan interface {
	// Checks returns a check of each protocol that the simulator can run.
	Checks() []Check
	// Off returns where what checks measured is too far from what the model says.
	Off() []string
	WriteText(w io.Writer, perClient bool)
	Document() any // for JSON
	SVG() []byte
}

// A Check has the simulator run a protocol. The plan keeps what it measures.
type Check struct {
	System string
	Run    func() error
}

// Show checks a plan if that is wanted, and writes it. It fails if a check found the model wrong,
// after the plan has been written: the figures are what the user needs to see why.
func (w *Wanted) Show(ctx context.Context, p *command.Program, verb string, r Plan) error {
	if w.check {
		if err := checkAll(ctx, p, verb, r.Checks()); err != nil {
			return err
		}
	}
	if w.svg != "" {
		if err := os.WriteFile(w.svg, r.SVG(), 0o644); err != nil {
			return fmt.Errorf("%s: --svg: %w", verb, err)
		}
		fmt.Fprintln(p.Err, "wrote", w.svg)
	}
	if w.json {
		if err := p.WriteJSON(r.Document()); err != nil {
			return err
		}
	} else {
		r.WriteText(p.Out, w.perClient)
	}
	return verdict(verb, r.Off())
}

func checkAll(ctx context.Context, p *command.Program, verb string, checks []Check) error {
	bar := command.NewProgress(p.Err)
	defer bar.Clear()
	for i, c := range checks {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: interrupted", verb)
		}
		if bar.Terminal {
			bar.Report(bench.Progress{Experiment: verb + " --check", Done: i, Total: len(checks), Doing: c.System})
		}
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: --check: %w", verb, err)
		}
	}
	return nil
}

// verdict is an error if a plan is off somewhere: it names the first such places.
func verdict(verb string, off []string) error {
	if len(off) == 0 {
		return nil
	}
	if more := len(off) - 5; more > 0 {
		off = append(off[:5], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%s: --check: what was measured is not what the model says: %s", verb, strings.Join(off, "; "))
}

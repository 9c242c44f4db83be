package speccmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/observe"
)

type reportFlags struct {
	json    bool
	watch   bool
	every   time.Duration
	timeout time.Duration
	save    string
}

func (p *program) reportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report ADDR|FILE",
		Short: "Show what speculation would save a service, and what it does save",
		Long: `Show the report of a service: for each kind of request, and each method that it calls, how often
the answer would have been known in advance, what that would save of the request's time, what it
would cost, and whether it is worth it; and what speculation that is on really saves.

ADDR is where the service has its debug page, HOST:PORT or a URL; the report is looked for below
/debug/foresay/ there. FILE is a report that --save or --json wrote, - is standard input.

docs/report.md says how to read it.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return p.report(c.Context(), f, args) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "write the report as JSON; with --watch one report a line")
	flags.BoolVar(&f.watch, "watch", false, "show it again and again, until interrupted")
	flags.DurationVar(&f.every, "every", 5*time.Second, "with --watch: the time between two reports")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long the service may take")
	flags.StringVar(&f.save, "save", "", "write the report as JSON to this `file`, too")
	return c
}

func (p *program) report(ctx context.Context, f reportFlags, args []string) error {
	switch {
	case len(args) != 1:
		return command.Usagef("report: want one service or file, got %d", len(args))
	case f.every <= 0:
		return command.Usagef("report: --every is %v; want more than 0", f.every)
	case f.timeout <= 0:
		return command.Usagef("report: --timeout is %v; want more than 0", f.timeout)
	}
	s, err := p.reportSource(args[0], f.timeout)
	if err != nil {
		return err
	}
	if f.watch && !s.lasting {
		return command.Usagef("report: --watch is for services: %s does not change", args[0])
	}
	if f.watch {
		return p.watch(ctx, f, s)
	}
	data, r, err := s.read(ctx)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return p.show(f, data, r)
}

func (p *program) show(f reportFlags, data []byte, r *observe.Report) error {
	if f.save != "" {
		if err := os.WriteFile(f.save, data, 0o644); err != nil {
			return fmt.Errorf("report: --save: %w", err)
		}
	}
	switch {
	case f.json && f.watch:
		return p.WriteJSONLine(r)
	case f.json:
		return p.WriteJSON(r)
	}
	return r.WriteText(p.Out)
}

// watch shows the report time and again. A service that is away for a while is said to be,
// and asked again.
func (p *program) watch(ctx context.Context, f reportFlags, s *reportSource) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	failing := false
	for first := true; ; first = false {
		data, r, err := s.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // that is how it is ended
		case err != nil && (first || !errors.Is(err, errAway)):
			return fmt.Errorf("report: %w", err)
		case err != nil:
			if !failing {
				fmt.Fprintf(p.Err, "report: %v; still trying\n", err)
			}
			failing = true
		default:
			failing = false
			if err := p.showAgain(f, first, data, r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showAgain shows a report in the place of the one before, if somebody looks.
func (p *program) showAgain(f reportFlags, first bool, data []byte, r *observe.Report) error {
	if !f.json {
		between := "\n"
		if command.IsTerminal(p.Out) {
			between = "\x1b[H\x1b[2J"
		} else if first {
			between = ""
		}
		if _, err := fmt.Fprint(p.Out, between); err != nil {
			return err
		}
	}
	return p.show(f, data, r)
}

// reportSource is where reports come from.
type reportSource struct {
	name    string
	lasting bool // it can be asked again
	read    func(ctx context.Context) ([]byte, *observe.Report, error)
}

// reportSource finds out what is meant by a command's argument.
func (p *program) reportSource(arg string, timeout time.Duration) (*reportSource, error) {
	if arg == "-" {
		return &reportSource{name: "standard input", read: func(context.Context) ([]byte, *observe.Report, error) {
			return readReport("standard input", p.In)
		}}, nil
	}
	if strings.Contains(arg, "://") {
		return reportService(arg, timeout)
	}
	info, err := os.Stat(arg)
	switch _, port, splitErr := net.SplitHostPort(arg); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("report: %s is a directory", arg)
	case err == nil:
		return &reportSource{name: arg, read: func(context.Context) ([]byte, *observe.Report, error) {
			return readFile(arg)
		}}, nil
	case splitErr == nil && port != "":
		return reportService("http://"+withHost(arg), timeout)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("report: there is no file %s, and it is no HOST:PORT or URL", arg)
	}
	return nil, fmt.Errorf("report: %w", err)
}

// withHost adds the host that an address such as :8080 leaves out.
func withHost(address string) string {
	if strings.HasPrefix(address, ":") {
		return "localhost" + address
	}
	return address
}

func readFile(name string) ([]byte, *observe.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return readReport(name, f)
}

// firstLine returns the beginning of a text that somebody else wrote, fit for an error.
func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	const most = 200
	if len(line) > most {
		line = append(line[:most:most], "..."...)
	}
	return strings.Map(harmless, strings.ToValidUTF8(string(line), "?"))
}

package speccmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

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

const (
	// debugPath is where services have their debug page.
	debugPath = "/debug/foresay/"
	// maxReportBytes bounds what is read of a report: of the most that a Collector keeps it is a
	// tenth.
	maxReportBytes = 16 << 20
)

// errAway is what a service's report fails with that may be there later.
var errAway = errors.New("no answer")

// readReport reads a report and checks that it is one.
func readReport(name string, from io.Reader) ([]byte, *observe.Report, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxReportBytes+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	case len(data) > maxReportBytes:
		return nil, nil, fmt.Errorf("%s: larger than %d MiB", name, maxReportBytes>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, nil, fmt.Errorf("%s: the input is empty", name)
	}
	if trimmed := bytes.TrimSpace(data); trimmed[0] != '{' && json.Valid(trimmed) {
		return nil, nil, fmt.Errorf("%s: not a report: want a JSON object", name)
	}
	// A later schema may have other types: look at the number alone first.
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, nil, fmt.Errorf("%s: not a report of foresay: %s", name, jsonProblem(data, err))
	}
	switch {
	case head.Schema == nil:
		return nil, nil, fmt.Errorf("%s: not a report of foresay: field \"schema\" is missing", name)
	case *head.Schema > observe.Schema:
		return nil, nil, fmt.Errorf("%s: the report has schema %d; this program knows up to %d, take a newer one", name,
			*head.Schema, observe.Schema)
	case *head.Schema < 1:
		return nil, nil, fmt.Errorf("%s: the report has schema %d; want 1 to %d", name, *head.Schema, observe.Schema)
	}
	r := new(observe.Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, nil, fmt.Errorf("%s: not a report of foresay: %s", name, jsonProblem(data, err))
	}
	return data, r, nil
}

// jsonProblem says what is wrong with JSON, and in which line.
func jsonProblem(data []byte, err error) string {
	offset, problem := int64(-1), err.Error()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		offset = kind.Offset
		problem = fmt.Sprintf("field %q cannot be a JSON %s", kind.Field, kind.Value)
	}
	if offset < 0 {
		return problem
	}
	at := min(int(offset), len(data))
	return fmt.Sprintf("line %d: %s", 1+bytes.Count(data[:at], []byte("\n")), problem)
}

// reportURL returns where a service's report is: at the URL itself if that names it, else below its
// debug page.
func reportURL(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s: want http or https, not %s", address, u.Scheme)
	case u.Host == "":
		return "", fmt.Errorf("%s: the host is missing", address)
	}
	const name = "report"
	path := u.Path
	switch {
	case strings.HasSuffix(path, debugPath+name):
	case strings.HasSuffix(path+"/", debugPath):
		path = strings.TrimSuffix(path, "/") + "/" + name
	default:
		path = strings.TrimSuffix(path, "/") + debugPath + name
	}
	u.Path, u.RawPath = path, ""
	return u.String(), nil
}

// reportService returns a service as a source of reports.
func reportService(address string, timeout time.Duration) (*reportSource, error) {
	at, err := reportURL(address)
	if err != nil {
		return nil, command.Usagef("report: %w", err)
	}
	client := &http.Client{Timeout: timeout}
	return &reportSource{name: at, lasting: true, read: func(ctx context.Context) ([]byte, *observe.Report, error) {
		return fetchReport(ctx, client, at)
	}}, nil
}

func fetchReport(ctx context.Context, client *http.Client, at string) ([]byte, *observe.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		if plain := (*url.Error)(nil); errors.As(err, &plain) {
			if plain.Timeout() {
				return nil, nil, fmt.Errorf("%s: %w within %v", at, errAway, client.Timeout)
			}
			err = plain.Err
		}
		return nil, nil, fmt.Errorf("%s: %w: %w", at, errAway, err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return nil, nil, fmt.Errorf("%s: there is no report: %s; the service must serve dash.Handler with a Collector at %s",
			at, said(res), debugPath)
	case res.StatusCode >= http.StatusInternalServerError:
		return nil, nil, fmt.Errorf("%s: %w but %s", at, errAway, said(res))
	case res.StatusCode != http.StatusOK:
		return nil, nil, fmt.Errorf("%s: %s", at, said(res))
	}
	data, r, err := readReport(at, res.Body)
	if away := net.Error(nil); errors.As(err, &away) || errors.Is(err, io.ErrUnexpectedEOF) && data == nil {
		err = fmt.Errorf("%w: %w", errAway, err)
	}
	return data, r, err
}

// said returns the status and the first line of an answer that is no report.
func said(res *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // what can be read will do
	if line := firstLine(text); line != "" {
		return res.Status + ": " + line
	}
	return res.Status
}

// harmless keeps what others wrote from doing things to a terminal.
func harmless(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

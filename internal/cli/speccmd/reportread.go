package speccmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/observe"
)

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

package speccmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/cli"
	"github.com/foresay/foresay/observe"
)

// aReport is a report of one kind of request.
func aReport(t *testing.T) *observe.Report {
	t.Helper()
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		collector.Record(&control.RequestRecord{
			Name: "GET /page", Start: time.Unix(int64(i), 0), Duration: 30 * time.Millisecond,
			Calls: []control.CallRecord{
				{CallSite: "/shop.Users/Get", Effect: control.EffectNone, End: 10 * time.Millisecond, Guessed: true, Right: i > 0},
				{CallSite: "/shop.Prices/List", Effect: control.EffectNone, Start: 10 * time.Millisecond,
					End: 30 * time.Millisecond},
			},
		})
	}
	return collector.Report(ctl)
}

func run(ctx context.Context, in io.Reader, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = cli.Main(ctx, args, cli.Streams{In: in, Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestReportOfAService(t *testing.T) {
	data, err := json.Marshal(aReport(t))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/foresay/report", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	mux.HandleFunc("GET /behind/debug/foresay/report", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no collector\x1b[2J\nmore", http.StatusNotFound)
	})
	mux.HandleFunc("GET /locked/debug/foresay/report", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusForbidden)
	})
	mux.HandleFunc("GET /busy/debug/foresay/report", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for _, arg := range []string{address, server.URL, server.URL + "/", server.URL + "/debug/foresay", server.URL +
		"/debug/foresay/report"} {
		code, out, errs := run(t.Context(), nil, "report", arg)
		if code != 0 || !strings.Contains(out, "GET /page: you could save") || !strings.Contains(out, "/shop.Users/Get") ||
			errs != "" {
			t.Errorf("%s: exit code %d\n%s%s", arg, code, out, errs)
		}
	}
	for arg, want := range map[string]string{
		server.URL + "/behind":  `/behind/debug/foresay/report: there is no report: 404 Not Found: no collector?[2J; the service must serve dash.Handler`,
		server.URL + "/locked":  `403 Forbidden: who are you?`,
		server.URL + "/busy":    `no answer within 50ms`,
		server.URL + "/nowhere": `there is no report: 404 Not Found: 404 page not found`,
	} {
		args := []string{"report", arg}
		if strings.Contains(want, "50ms") {
			args = append(args, "--timeout", "50ms") // the others answer, on a busy machine too
		}
		if code, out, errs := run(t.Context(), nil, args...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s%s; want 1, ...%s", arg, code, out, errs, want)
		}
	}
	server.Close()
	if code, _, errs := run(t.Context(), nil, "report", address); code != 1 || !strings.Contains(errs, "no answer: ") ||
		!strings.Contains(errs, address) {
		t.Errorf("a service that is away: exit code %d, %s", code, errs)
	}
}

func TestReportSavedAndReadAgain(t *testing.T) {
	data, err := json.Marshal(aReport(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	code, direct, errs := run(t.Context(), bytes.NewReader(data), "report", "-", "--save", file)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if saved, err := os.ReadFile(file); err != nil || !bytes.Equal(saved, data) {
		t.Errorf("saved %q, %v", saved, err)
	}
	if code, out, errs := run(t.Context(), nil, "report", file); code != 0 || out != direct || errs != "" {
		t.Errorf("read again: exit code %d, %s\n%s\nwant\n%s", code, errs, out, direct)
	}
	code, out, _ := run(t.Context(), nil, "report", file, "--json")
	var r observe.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Requests) != 1 ||
		r.Requests[0].Requests != 100 || r.Status == nil {
		t.Errorf("--json: exit code %d, %v\n%s", code, err, out)
	}
	if code, _, errs := run(t.Context(), nil, "report", file, "--save", filepath.Join(file, "x")); code != 1 ||
		!strings.Contains(errs, "--save") {
		t.Errorf("--save into a file: exit code %d, %s", code, errs)
	}
}

// TestReportWatched: a service that is away for a while is asked again, and an interrupt ends it
// without an error.
func TestReportWatched(t *testing.T) {
	report := aReport(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := asked.Add(1); n {
		case 2, 3:
			http.Error(w, "restarting", http.StatusServiceUnavailable)
		case 5:
			cancel()
		default:
			report.LeftOut = n
			_ = json.NewEncoder(w).Encode(report)
		}
	}))
	defer server.Close()
	code, out, errs := run(ctx, nil, "report", "--watch", "--every", "1ms", "--json", server.URL)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 2 || !strings.Contains(lines[0], `"left_out":1`) ||
		!strings.Contains(lines[1], `"left_out":4`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if strings.Count(errs, "restarting; still trying") != 1 {
		t.Errorf("got %q", errs)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("it ended by itself")
	}
}

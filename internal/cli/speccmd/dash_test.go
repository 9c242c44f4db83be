package speccmd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/internal/cli"
	"github.com/foresay/foresay/internal/cli/command"
)

// running is a command that goes on until it is interrupted.
type running struct {
	address string
	err     *bytes.Buffer
	stop    func() int
}

var addressLine = regexp.MustCompile(`^The dashboard is at (http://127\.0\.0\.1:\d+/debug/foresay/)$`)

func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	run := &running{err: &bytes.Buffer{}}
	code := make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, args, command.Streams{In: strings.NewReader(""), Out: w, Err: run.err})
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	for run.address == "" {
		if !lines.Scan() {
			cancel()
			t.Fatalf("%v: exit code %d, no address: %s", args, <-code, run.err)
		}
		if m := addressLine.FindStringSubmatch(lines.Text()); m != nil {
			run.address = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	var end int
	ended := false
	run.stop = func() int {
		if cancel(); !ended {
			end, ended = <-code, true
		}
		return end
	}
	t.Cleanup(func() { run.stop() })
	return run
}

// until reads events until one of a kind fits.
func until[T any](t *testing.T, address, kind string, fits func(T) bool) T {
	t.Helper()
	resp, err := http.Get(address + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	is := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			is = value
		case name == "data" && is == kind:
			var v T
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				t.Fatalf("event %s: %v", kind, err)
			}
			if fits(v) {
				return v
			}
		}
	}
	t.Fatalf("the events ended before a %s that fits: %v", kind, lines.Err())
	panic("not reached")
}

func post(t *testing.T, address, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestDash looks at the live demo through foresay dash, beside a service that is down.
func TestDash(t *testing.T) {
	demo := start(t, "demo", "--dash")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	page := start(t, "dash", "shop="+strings.TrimSuffix(strings.TrimPrefix(demo.address, "http://"), dash.Path),
		gone.Addr().String())
	type service struct {
		Name, Error string
		Up          bool
	}
	list := until(t, page.address, "services", func(l []service) bool {
		return len(l) == 2 && l[0].Up && l[1].Error != "not asked yet"
	})
	if list[0].Name != "shop" || list[1].Up || !strings.Contains(list[1].Error, "refused") {
		t.Errorf("services: %+v", list)
	}
	task := until(t, page.address, "task", func(task dash.Task) bool { return task.Outcome == "confirmed" })
	if !strings.HasPrefix(task.Report.Task, "purchase of user") || len(task.Calls) < 3 {
		t.Errorf("task: %+v", task.Report)
	}
	if code, text := post(t, page.address+"s/0/kill", `{"killed": true}`); code != http.StatusNoContent {
		t.Errorf("kill: %d %s", code, text)
	}
	until(t, page.address, "status", func(s control.Status) bool { return s.Killed })
	for _, r := range []*running{page, demo} {
		if code := r.stop(); code != 0 {
			t.Errorf("interrupted: exit code %d: %s", code, r.err)
		}
	}
}

// TestDashToken checks what is sent to the services, and that --read-only keeps it.
func TestDashToken(t *testing.T) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(dash.Handler(dash.Config{Control: ctl, Authorize: func(r *http.Request) error {
		if r.Header.Get("Authorization") != "Bearer sesame" || r.Header.Get("X-Tenant") != "a: b" {
			return http.ErrNoCookie
		}
		return nil
	}}))
	defer service.Close()
	type service2 struct{ Up, Switch bool }
	for _, c := range []struct {
		flags []string
		may   bool
		code  int
	}{
		{[]string{"--token", "sesame", "--header", "X-Tenant: a: b"}, true, http.StatusNoContent},
		{[]string{"--token", "guess"}, false, http.StatusForbidden},
		{[]string{"--token", "sesame", "--header", "X-Tenant: a: b", "--read-only"}, false, http.StatusForbidden},
	} {
		page := start(t, append([]string{"dash", service.URL}, c.flags...)...)
		list := until(t, page.address, "services", func(l []service2) bool { return l[0].Up })
		if list[0].Switch != c.may {
			t.Errorf("%v: may switch: %v", c.flags, list[0].Switch)
		}
		if code, text := post(t, page.address+"s/0/kill", `{"killed": false}`); code != c.code {
			t.Errorf("%v: %d %s; want %d", c.flags, code, text, c.code)
		}
		page.stop()
	}
}

// TestDashNames checks that a foreign name that leads to this machine leads nowhere.
func TestDashNames(t *testing.T) {
	page := start(t, "demo", "--dash")
	for host, code := range map[string]int{"": 200, "localhost:1": 200, "[::1]:80": 200, "evil.example": 421,
		"127.0.0.1.evil.example:80": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("for %q: %s, want %d", host, resp.Status, code)
		}
	}
}

// TestDashReach checks that whoever serves the page to other machines is told.
func TestDashReach(t *testing.T) {
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true} {
		ctx, cancel := context.WithCancel(t.Context())
		var errs bytes.Buffer
		code := cli.Main(ctx, []string{"dash", "127.0.0.1:1", "--listen", listen}, command.Streams{In: strings.NewReader(""),
			Out: interrupt(cancel), Err: &errs})
		if got := strings.Contains(errs.String(), "other machines can reach the page"); code != 0 || got != warns {
			t.Errorf("--listen %s: exit code %d: %s", listen, code, &errs)
		}
	}
}

// interrupt ends a command when it writes.
type interrupt context.CancelFunc

func (i interrupt) Write(b []byte) (int, error) {
	i()
	return len(b), nil
}

func TestDashArguments(t *testing.T) {
	for says, args := range map[string][]string{
		"want one service or more": {"dash"},
		"are the same service":     {"dash", "A:1", "x=http://a:1/debug/foresay"},
		"x=a:1 and x=b:1 have the": {"dash", "x=a:1", "x=b:1"},

		"the same service, http://a:1/debug/foresay/\n":      {"dash", "a:1", "http://a:1"},
		"the same service, https://a/debug/foresay/\n":       {"dash", "https://a", "x=https://a/"},
		"the same service, http://a:1/x/foresay/\n":          {"dash", "http://a:1/x/foresay/", "http://a:1/x/foresay"},
		"the same service, http://[::1]:80/debug/foresay/\n": {"dash", "pay=[::1]:80", "[::1]:80"},
		"pay=[::1]:80 and pay=a:1 have the":                  {"dash", "pay=[::1]:80", "pay=a:1"},

		"--open is for --dash":      {"demo", "--open"},
		"--listen is for --dash":    {"demo", "--listen", "127.0.0.1:0"},
		"--svg is not for --dash":   {"demo", "--dash", "--svg", "x"},
		`":80" is no address`:       {"dash", ":80"},
		`"ftp://a" is no address`:   {"dash", "ftp://a"},
		`"x=" is no address`:        {"dash", "x="},
		"is not NAME: VALUE":        {"dash", "a:1", "--header", "nonsense"},
		"both set Authorization":    {"dash", "a:1", "--token", "a", "--header", "authorization: b"},
		"--listen nowhere:x":        {"dash", "a:1", "--listen", "nowhere:x"},
		"--json is not for --dash":  {"demo", "--dash", "--json"},
		"at most 64":                append([]string{"dash"}, strings.Fields(strings.Repeat("a:1 ", 65))...),
		`?x=y" is no address`:       {"dash", "http://a:1?x=y"},
		"--token has a line break":  {"dash", "a:1", "--token", "a\nb"},
		"Run 'foresay dash --help'": {"dash", "--nothing"},
		"unknown flag --read-write": {"dash", "a:1", "--read-write"},
	} {
		var errs bytes.Buffer
		want := 2
		if strings.HasPrefix(says, "--listen nowhere") {
			want = 1
		}
		if code := cli.Main(t.Context(), args, command.Streams{In: strings.NewReader(""), Out: io.Discard,
			Err: &errs}); code != want || !strings.Contains(errs.String(), says) {
			t.Errorf("%.60q: exit code %d, %q; want %q", args, code, errs.String(), says)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
)

// stage is a front with its services, whose load comes in parts.
type stage struct {
	front    *front
	services *services
	client   *http.Client
	left     []request
}

// openStage opens a stage in a bubble, where it is closed when the test ends.
func openStage(t *testing.T, callSiteFile string) *stage {
	t.Helper()
	n := virtual()
	s := &stage{left: workload(1, 1000, 120)}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := s.front.stop(); err != nil {
			t.Error(err)
		}
		s.services.stop()
		n.Close()
	})
	s.client = newClient(n)
	var err error
	if s.services, err = startServices(n, 1, true); err != nil {
		t.Fatal(err)
	}
	if s.front, err = startPrepared(n, s.services, callSiteFile); err != nil {
		t.Fatal(err)
	}
	return s
}

// play drives the next n requests, checks the answers, and returns how many
// predictions were taken meanwhile.
func (s *stage) play(t *testing.T, n int) int64 {
	t.Helper()
	before := s.predicted()
	d := s.services.backend.data
	clear(d.views)
	if _, err := d.check(drive(t.Context(), s.client, s.front.address, d, s.next(n))); err != nil {
		t.Fatal(err)
	}
	return s.predicted() - before
}

// next returns the next n requests.
func (s *stage) next(n int) []request {
	part := s.left[:n]
	s.left = s.left[n:]
	start := part[0].at
	for i := range part {
		part[i].at -= start
	}
	return part
}

// predicted returns how many predictions were taken.
func (s *stage) predicted() (n int64) {
	for _, site := range s.front.foresay.Control().Status().CallSites {
		n += site.Stats.Predicted
	}
	return n
}

func predicted() []string {
	return []string{bffv1.Users_GetUser_FullMethodName, bffv1.Permissions_Check_FullMethodName}
}

// modeFile writes the site file of the rung with a mode.
func modeFile(t *testing.T, path, mode string) {
	t.Helper()
	for _, r := range rungs() {
		if r.prepared && r.mode == mode {
			if err := os.WriteFile(path, []byte(r.callSiteFile()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestClimbingWithoutRestart: an edit of the site file takes effect in the
// program that runs, and so do the kill switch and what is set at run time.
func TestClimbingWithoutRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	modeFile(t, file, "observe")
	synctest.Test(t, func(t *testing.T) {
		s := openStage(t, file)
		if n := s.play(t, 100); n != 0 {
			t.Errorf("observe took %d predictions", n)
		}
		set := func(mode string) {
			modeFile(t, file, mode)
			time.Sleep(3 * time.Second) // the file is looked at once a second
		}
		set("canary")
		some := s.play(t, 100)
		set("on")
		all := s.play(t, 100)
		if some < 20 || all < 3*some {
			t.Errorf("canary took %d predictions of 100 requests, and on %d", some, all)
		}
		ctl := s.front.foresay.Control()
		ctl.Kill(true)
		if n := s.play(t, 100); n != 0 {
			t.Errorf("killed, the front took %d predictions", n)
		}
		ctl.Kill(false)
		if n := s.play(t, 100); n < all/2 {
			t.Errorf("let go on, the front took %d predictions", n)
		}
		for _, method := range predicted() {
			if err := ctl.SetMode(method, control.ModeOff, 0); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.play(t, 100); n != 0 {
			t.Errorf("off at run time, the front took %d predictions", n)
		}
		set("off")
		for _, method := range predicted() {
			if err := ctl.SetMode(method, control.ModeDefault, 0); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.play(t, 100); n != 0 {
			t.Errorf("off in the file, the front took %d predictions", n)
		}
	})
}

// TestKillVariable: a process that starts killed speculates as little as plain code.
func TestKillVariable(t *testing.T) {
	t.Setenv(control.KillVariable, "1")
	all := climbVirtual(t, config{requests: 100, rate: 120, seed: 1}, "plain", "on")
	if plain, on := all[0], all[1]; on.mean() != plain.mean() || on.calls != plain.calls {
		t.Errorf("killed: %v with %d calls, plain %v with %d", on.mean(), on.calls, plain.mean(), plain.calls)
	}
}

// TestDebugEndpoint: it tells and it switches, for those on the same machine.
func TestDebugEndpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	modeFile(t, file, "observe")
	synctest.Test(t, func(t *testing.T) {
		s := openStage(t, file)
		s.play(t, 20)
		mux := s.front.debug
		post := func(from string) int {
			body := `{"site": "` + bffv1.Pricing_Quote_FullMethodName + `", "mode": "canary", "share": 0.2}`
			r := httptest.NewRequest(http.MethodPost, dash.Path+"mode", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = from
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			return w.Code
		}
		if code := post("192.0.2.1:1"); code != http.StatusForbidden {
			t.Errorf("from elsewhere: %d", code)
		}
		if code := post("127.0.0.1:1"); code != http.StatusNoContent {
			t.Errorf("from here: %d", code)
		}
		for _, site := range s.front.foresay.Control().Status().CallSites {
			if want := site.Name == bffv1.Pricing_Quote_FullMethodName; (site.Mode == control.ModeCanary) != want {
				t.Errorf("%s is in mode %v", site.Name, site.Mode)
			}
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path+"report", nil))
		var report observe.Report
		if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil || len(report.Requests) != 1 ||
			report.Requests[0].Requests != 20 {
			t.Errorf("report: %d %s", w.Code, w.Body)
		}
	})
}

// wrong predicts what is never, or hardly ever, right.
const wrong = `
{"sites": [
  {"method": "/foresay.bff.v1.Users/GetUser", "mode": "on", "predictors": [{"kind": "constant", "value": {"name": "nobody", "plan": "trade"}}]},
  {"method": "/foresay.bff.v1.Permissions/Check", "mode": "on", "predictors": [{"kind": "constant", "value": {"allowed": false}}]}
]}
`

// TestWrongGuesses: if all guesses are wrong the answers and the views are still
// those of plain execution, and the sites trip.
func TestWrongGuesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := openStage(t, file)
		if n := s.play(t, 400); n == 0 {
			t.Error("no prediction was taken")
		}
		for _, site := range s.front.foresay.Control().Status().CallSites {
			if site.Predictors > 0 && (site.Stats.Right > site.Stats.Wrong || site.Stats.Trips == 0) {
				t.Errorf("%s is %v: %+v", site.Name, site.State, site.Stats)
			}
		}
		taken := s.predicted()
		if s.play(t, 400); s.predicted()-taken > taken {
			t.Errorf("%d wrong predictions were taken in the first 400 requests, and %d in the next", taken, s.predicted()-taken)
		}
	})
}

// TestOutage: a service that fails makes each guess at its answers wrong. Requests
// fail as those of plain code do, and the calls made in vain stay within the budget.
func TestOutage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	modeFile(t, file, "on")
	synctest.Test(t, func(t *testing.T) {
		s := openStage(t, file)
		s.play(t, 300)
		backend := s.services.backend
		clear(backend.data.views)
		before := backend.calls.Load()
		backend.down.Store(true)
		failed := drive(t.Context(), s.client, s.front.address, backend.data, s.next(600))
		for _, a := range failed {
			if a.err == nil || !strings.Contains(a.err.Error(), "502") {
				t.Fatalf("request %s: %v", a.request.id, a.err)
			}
		}
		if n := len(backend.data.views); n > 0 {
			t.Errorf("%d views are recorded of pages that failed", n)
		}
		time.Sleep(time.Second) // wasted calls are over
		// Plain code makes two calls per failing request; before there were five.
		vain, useful := backend.calls.Load()-before-2*600, int64(5*300+2*600)
		t.Logf("%d wasted calls, %d count", vain, useful)
		if vain <= 0 || vain > useful*15/100 {
			t.Errorf("%d calls were made in vain, and %d count", vain, useful)
		}
		backend.down.Store(false)
		s.play(t, 50)
	})
}

// TestNotFound: errors are the plain program's, on whatever rung.
func TestNotFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	modeFile(t, file, "on")
	synctest.Test(t, func(t *testing.T) {
		s := openStage(t, file)
		s.play(t, 20)
		for _, r := range []request{{id: "x", user: "nobody", sku: "a0"}, {id: "y", user: "u0", sku: "nothing"}} {
			var p Page
			err := ask(t.Context(), s.client, s.front.address, r, &p)
			if err == nil || !strings.Contains(err.Error(), "404") {
				t.Errorf("user %s, article %s: %v, %v", r.user, r.sku, p, err)
			}
		}
	})
}

// TestInterrupted: a load that is stopped early is checked as far as it came.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Second} {
			n := virtual()
			ctx, cancel := context.WithTimeout(t.Context(), after)
			res, err := climb(ctx, n, rungs()[5], config{requests: 600, rate: 120, seed: 1})
			cancel()
			n.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := len(res.answers); (got == 0) != (after == 0) || got == 600 || res.verdict.same+
				res.verdict.meanwhile != got {
				t.Errorf("stopped after %v, %d answers are there, checked are %+v", after, got, res.verdict)
			}
			writeTable(io.Discard, []*result{res})
		}
	})
}

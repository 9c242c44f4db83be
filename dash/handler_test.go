package dash_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
)

func mayAll(*http.Request) error { return nil }

func decode[T any](t testing.TB, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

func TestReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{})
		web := serve(t, dash.Handler(dash.Config{Control: s.control, Name: "shop"}))
		for _, name := range []string{"mode", "kill"} {
			code, body := web.ask(t, http.MethodPost, name, `{"killed": true}`)
			if code != http.StatusForbidden || !strings.Contains(body, "read-only") {
				t.Errorf("POST %s: %d %s", name, code, body)
			}
		}
		if s.control.Killed() {
			t.Error("speculation is killed")
		}
		code, body := web.ask(t, http.MethodGet, "rights", "")
		if r := decode[dash.Rights](t, body); code != http.StatusOK || r.Switch || r.Name != "shop" || r.Report ||
			!strings.Contains(r.Reason, "read-only") {
			t.Errorf("rights: %d %+v", code, r)
		}
		code, body = web.ask(t, http.MethodGet, "status", "")
		if st := decode[control.Status](t, body); code != http.StatusOK || len(st.CallSites) != 2 ||
			st.CallSites[0].Mode != control.ModeOn {
			t.Errorf("status: %d %+v", code, st)
		}
		if code, body = web.ask(t, http.MethodGet, "report", ""); code != http.StatusNotFound ||
			!strings.Contains(body, "Collector") {
			t.Errorf("report: %d %s", code, body)
		}
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			if code, _ := web.ask(t, method, "status", ""); code != http.StatusMethodNotAllowed {
				t.Errorf("%s status: %d", method, code)
			}
		}
		if code, body = web.ask(t, http.MethodGet, "nothing.js", ""); code != http.StatusNotFound ||
			!strings.Contains(body, "nothing.js") {
			t.Errorf("nothing.js: %d %s", code, body)
		}
	})
}

func TestNoControl(t *testing.T) {
	w := httptest.NewRecorder()
	dash.Handler(dash.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path, nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Control") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestNoFlush serves events through what hides that they can be flushed.
func TestNoFlush(t *testing.T) {
	h := dash.Handler(dash.Config{Control: newShop(t, control.Config{}).control})
	w := httptest.NewRecorder()
	h.ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequest(http.MethodGet, dash.Path+"events", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Flush") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{})
		web := serve(t, dash.Handler(dash.Config{Control: s.control, Authorize: func(r *http.Request) error {
			if r.Header.Get("Authorization") != "Bearer sesame" {
				return errors.New("say the word")
			}
			return nil
		}}))
		auth := []string{"Authorization", "Bearer sesame"}
		for _, c := range []struct {
			what, name, body string
			header           []string
			code             int
			says             string
		}{
			{"no token", "kill", `{"killed": true}`, []string{}, 403, "say the word"},
			{"a foreign page", "kill", `{"killed": true}`, append([]string{"Sec-Fetch-Site", "cross-site"}, auth...), 403,
				"cross-origin"},
			{"a foreign origin", "kill", `{"killed": true}`, append([]string{"Origin", "https://evil.example"}, auth...), 403,
				"cross-origin"},
			{"a form", "kill", `{"killed": true}`, append([]string{"Content-Type", "text/plain"}, auth...), 415,
				"application/json"},
			{"no value", "kill", `{}`, auth, 400, `"killed"`},
			{"an unknown field", "kill", `{"killed": true, "force": true}`, auth, 400, `"force"`},
			{"two values", "kill", `{"killed": true} {}`, auth, 400, "more than one"},
			{"too much", "kill", `{"killed": true` + strings.Repeat(" ", 5000) + `}`, auth, 413, "4096 bytes"},
			{"no JSON", "mode", `mode=on`, auth, 400, "body"},
			{"an array", "kill", `[1]`, auth, 400, "kill: the body: want a JSON object such as {\"killed\": true}\n"},
			{"no body", "kill", ``, auth, 400, "it is empty; want a JSON object"},
			{"half a body", "kill", `{"killed"`, auth, 400, "it ends too early; want a JSON object"},
			{"a text for a share", "mode", `{"share": "x"}`, auth, 400, `"share" has a value of the wrong type, string; want`},
			{"an unknown site", "mode", `{"site": "/no/such", "mode": "on"}`, auth, 404, "/no/such"},
			{"an unknown mode", "mode", `{"site": "/shop.Prices/Get", "mode": "maybe"}`, auth, 400, "maybe"},
			{"a misspelt mode", "mode", `{"site": "/shop.Prices/Get", "mode": "canry"}`, auth, 400,
				`"canry" is not one of default, off, observe, shadow, canary, on; did you mean canary?`},
			{"a misspelt field", "mode", `{"site": "/shop.Prices/Get", "mod": "on"}`, auth, 400,
				`unknown field "mod"; did you mean mode?`},
			{"no share", "mode", `{"site": "/shop.Prices/Get", "mode": "canary"}`, auth, 400, "share"},
			{"a share of all", "mode", `{"site": "/shop.Prices/Get", "mode": "on", "share": 1}`, auth, 400, "share"},
			{"a share above one", "mode", `{"site": "/shop.Prices/Get", "mode": "canary", "share": 2}`, auth, 400,
				"between 0 and 1"},
		} {
			code, body := web.ask(t, http.MethodPost, c.name, c.body, c.header...)
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("%s: %d %s; want %d with %q", c.what, code, body, c.code, c.says)
			}
		}
		if mode, _ := s.prices.Mode(); mode != control.ModeOn || s.control.Killed() {
			t.Fatalf("something was switched: %v, %v", mode, s.control.Killed())
		}
		set := func(name, body string) {
			t.Helper()
			if code, text := web.ask(t, http.MethodPost, name, body, auth...); code != http.StatusNoContent {
				t.Errorf("POST %s %s: %d %s", name, body, code, text)
			}
		}
		set("mode", `{"site": "/shop.Prices/Get", "mode": "canary", "share": 0.1}`)
		if mode, share := s.prices.Mode(); mode != control.ModeCanary || share != 0.1 {
			t.Errorf("mode %v, share %v", mode, share)
		}
		set("mode", `{"site": "/shop.Prices/Get", "mode": "default"}`)
		if mode, _ := s.prices.Mode(); mode != control.ModeOn {
			t.Errorf("taken back: mode %v", mode)
		}
		set("kill", `{"killed": true}`)
		if !s.control.Killed() {
			t.Error("not killed")
		}
		set("kill", `{"killed": false}`)
		if s.control.Killed() {
			t.Error("still killed")
		}
		_, body := web.ask(t, http.MethodGet, "rights", "", auth...)
		if r := decode[dash.Rights](t, body); !r.Switch {
			t.Errorf("rights with the token: %+v", r)
		}
	})
}

// TestSaved checks that what a task is said to have saved is what its request
// enters, and the other sums.
func TestSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []time.Duration
		s := newShop(t, control.Config{RecentEvery: -1,
			OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
				want = append(want, r.Tasks[0].Saved)
			}}})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		for _, right := range []bool{true, false} {
			ctx, r := s.control.Begin(t.Context(), "/web/get", "")
			s.task(t, ctx, "get", right, 10*time.Millisecond)
			r.End(nil)
		}
		_, body := web.ask(t, http.MethodGet, "tasks", "")
		got := decode[dash.Tasks](t, body)
		if got.Total != 2 || len(got.Tasks) != 2 {
			t.Fatalf("tasks: %s", body)
		}
		for i, task := range got.Tasks {
			if task.Saved != want[i] || task.Number != uint64(i+1) || task.Wasted != i {
				t.Errorf("task %d saved %v and wasted %d calls, number %d; its request says %v", i, task.Saved, task.Wasted,
					task.Number, want[i])
			}
		}
		if got.Tasks[0].Saved != 10*time.Millisecond {
			t.Errorf("the right prediction saved %v", got.Tasks[0].Saved)
		}
		if _, body = web.ask(t, http.MethodGet, "tasks?after=1", ""); len(decode[dash.Tasks](t, body).Tasks) != 1 {
			t.Errorf("after 1: %s", body)
		}
		if code, body := web.ask(t, http.MethodGet, "tasks?after=-1", ""); code != http.StatusBadRequest ||
			!strings.Contains(body, "-1") {
			t.Errorf("after -1: %d %s", code, body)
		}
	})
}

// TestLargeTask checks that what is sent of one task is bounded.
func TestLargeTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{RecentEvery: -1})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		_, err := foresay.Do(s.control.Context(t.Context()), func(ctx context.Context) (int, error) {
			for i := range 1000 {
				op := &driver.Operation{CallSite: s.prices, Identity: string(rune(i)), CanSpeculate: true,
					Transport: &later{time.Millisecond, i}}
				if _, err := driver.Perform(ctx, op); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, body := web.ask(t, http.MethodGet, "tasks", "")
		task := decode[dash.Tasks](t, body).Tasks[0]
		if task.Cut != 800 || len(task.Calls) != 200 || len(task.Runs[0].Steps) != 200 {
			t.Errorf("cut %d, %d calls, %d steps", task.Cut, len(task.Calls), len(task.Runs[0].Steps))
		}
		if full, _ := s.control.Tasks(0); len(full[0].Calls) != 1000 || len(full[0].Runs[0].Steps) != 1000 {
			t.Error("the report itself was cut")
		}
	})
}

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector, err := observe.NewCollector(observe.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := newShop(t, control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
		web := serve(t, dash.Handler(dash.Config{Control: s.control, Collector: collector}))
		ctx, r := s.control.Begin(t.Context(), "/web/get", "")
		s.task(t, ctx, "get", true, 10*time.Millisecond)
		r.End(nil)
		code, body := web.ask(t, http.MethodGet, "report", "")
		got := decode[observe.Report](t, body)
		if code != http.StatusOK || len(got.Requests) != 1 || got.Requests[0].Name != "/web/get" ||
			len(got.Requests[0].Methods) != 2 {
			t.Errorf("report: %d %s", code, body)
		}
	})
}

package docs_test

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
)

// TestDashboardPage serves the dashboard as the page says.
func TestDashboardPage(t *testing.T) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := control.New(control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
	if err != nil {
		t.Fatal(err)
	}
	token := "Bearer sesame"
	debug := http.NewServeMux()
	debug.Handle(dash.Path, dash.Handler(dash.Config{
		Control:   ctl,
		Collector: collector,
		Name:      "checkout",
		Authorize: func(r *http.Request) error {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(token)) != 1 {
				return errors.New("the token is missing or wrong")
			}
			return nil
		},
	}))
	for header, want := range map[string]int{"": http.StatusForbidden, token: http.StatusNoContent} {
		r := httptest.NewRequest(http.MethodPost, dash.Path+"kill", strings.NewReader(`{"killed": true}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		debug.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with %q: %d %s", header, w.Code, w.Body)
		}
	}
	if !ctl.Killed() {
		t.Error("the switch did nothing")
	}
}

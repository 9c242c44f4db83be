package observe_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

type brokenWriter struct {
	http.ResponseWriter
	err error
}

func (w *brokenWriter) Flush()            {}
func (w *brokenWriter) FlushError() error { return w.err }

// To observe changes no error: not that of a flush to a client that is gone.
func TestFlushError(t *testing.T) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	flush := func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() }
	for _, h := range []http.Handler{http.HandlerFunc(flush), observe.Handler(ctl, http.HandlerFunc(flush))} {
		h.ServeHTTP(&brokenWriter{httptest.NewRecorder(), gone}, httptest.NewRequest("GET", "/", nil))
		if !errors.Is(err, gone) {
			t.Errorf("flushing says %v, want %v", err, gone)
		}
	}
}

// Who stands outside sees the pattern that a mux found, as without the Handler.
func TestPattern(t *testing.T) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) {})
	for _, h := range []http.Handler{mux, observe.Handler(ctl, mux)} {
		r := httptest.NewRequest("GET", "/users/7", nil)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != "GET /users/{id}" || r.PathValue("id") != "7" {
			t.Errorf("pattern %q, id %q", r.Pattern, r.PathValue("id"))
		}
	}
}

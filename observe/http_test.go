package observe_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

func TestHandlerBeginsRequests(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, control.RequestOf(r.Context()).ID())
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/hinted", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusInternalServerError)
		w.WriteHeader(http.StatusOK) // superfluous
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	requests, ctl := recorded(t)
	outside := observe.Handler(ctl, mux)
	// Behind another middleware the pattern is not known beforehand.
	hidden := observe.Handler(ctl, http.HandlerFunc(mux.ServeHTTP))
	inside := http.NewServeMux()
	inside.Handle("POST /orders/{id}", observe.Handler(ctl, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, visit := range []struct {
		handler      http.Handler
		method, path string
		body         string
	}{
		{outside, "GET", "/users/7", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{outside, "GET", "/users/8", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{outside, "GET", "/broken", ""},
		{outside, "POST", "/refused", "no\n"},
		{outside, "GET", "/hinted", ""},
		{outside, "GET", "/nowhere", "404 page not found\n"},
		{outside, "BREW", "/refused", "no\n"},
		{outside, "GET", "/panic", ""},
		{hidden, "GET", "/users/7", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{inside, "POST", "/orders/9", ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(visit.method, visit.path, nil)
		r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		if p := panicked(func() { visit.handler.ServeHTTP(w, r) }); (p != nil) != (visit.path == "/panic") {
			t.Errorf("%s %s: panic %v", visit.method, visit.path, p)
		}
		if got := w.Body.String(); got != visit.body {
			t.Errorf("%s %s: got body %q, want %q", visit.method, visit.path, got, visit.body)
		}
	}
	var got []string
	for _, r := range requests.take() {
		got = append(got, fmt.Sprint(r.Name, " failed=", r.Failed))
	}
	if diff := cmp.Diff([]string{
		"GET /users/{id} failed=false", "GET /users/{id} failed=false", "GET /broken failed=true",
		"POST /refused failed=false",
		"GET /hinted failed=true", "GET failed=false", "OTHER /refused failed=false", "GET /panic failed=true",
		"GET failed=false", "POST /orders/{id} failed=false",
	}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestHandlersSeeTheirWriter: what a handler may do with its writer is what it may do without the
// middleware.
func TestHandlersSeeTheirWriter(t *testing.T) {
	type abilities struct{ Flush, Hijack, ReadFrom, Push, Controller bool }
	can := func(w http.ResponseWriter) (a abilities) {
		_, a.Flush = w.(http.Flusher)
		_, a.Hijack = w.(http.Hijacker)
		_, a.ReadFrom = w.(io.ReaderFrom)
		_, a.Push = w.(http.Pusher)
		a.Controller = http.NewResponseController(w).Flush() == nil
		return a
	}
	_, ctl := recorded(t)
	for name, w := range map[string]http.ResponseWriter{
		"bare": bare{}, "flusher": httptest.NewRecorder(), "http1": http1{httptest.NewRecorder()},
		"http2":    http2{httptest.NewRecorder()},
		"hijacker": hijacker{httptest.NewRecorder()},
	} {
		t.Run(name, func(t *testing.T) {
			var got abilities
			observe.Handler(ctl, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				got = can(w)
			})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if want := can(w); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

type bare struct{}

func (bare) Header() http.Header         { return nil }
func (bare) Write(p []byte) (int, error) { return len(p), nil }
func (bare) WriteHeader(int)             {}

type hijacker struct{ *httptest.ResponseRecorder }

func (hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errors.New("not here")
}

type http1 struct{ *httptest.ResponseRecorder }

func (http1) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errors.New("not here") }
func (w http1) ReadFrom(r io.Reader) (int64, error)        { return w.Body.ReadFrom(r) }

type http2 struct{ *httptest.ResponseRecorder }

func (http2) Push(string, *http.PushOptions) error { return nil }

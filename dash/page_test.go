package dash_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
)

// maxPage is how large the page may be with all that it loads, in bytes.
const maxPage = 200 << 10

// namespaces are no addresses that anything is loaded from.
var namespaces = regexp.MustCompile(`http://www\.w3\.org/(2000/svg|1999/xhtml)`)

var foreign = regexp.MustCompile(`(?i)\b(https?|wss?):|["'(]//|@import|\bimport\(|\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write`)

// TestAssets checks that the page is small and asks nobody else for anything.
func TestAssets(t *testing.T) {
	total := 0
	h := dash.Handler(dash.Config{Control: newShop(t, control.Config{}).control})
	err := fs.WalkDir(os.DirFS("assets"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile("assets/" + path)
		if err != nil {
			return err
		}
		total += len(b)
		text := namespaces.ReplaceAllString(string(b), "")
		if at := foreign.FindStringIndex(text); at != nil {
			t.Errorf("%s has %q", path, text[at[0]:min(len(text), at[1]+40)])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path+path, nil))
		if w.Code != http.StatusOK || w.Body.String() != string(b) {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
		if kind := w.Header().Get("Content-Type"); kind == "" || kind == "application/octet-stream" {
			t.Errorf("%s: Content-Type %q", path, kind)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > maxPage || total < 10<<10 {
		t.Errorf("the page has %d bytes; want at most %d", total, maxPage)
	}
}

func TestPolicy(t *testing.T) {
	h := dash.Handler(dash.Config{Control: newShop(t, control.Config{}).control})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path, nil))
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'",
		"form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	page := w.Body.String()
	if inline := regexp.MustCompile(`(?i)<style|\son\w+=|style="|<script[^>]*>[^<]`).FindString(page); inline != "" {
		t.Errorf("the page has %q, which the policy forbids", inline)
	}
	tag := w.Header().Get("ETag")
	r := httptest.NewRequest(http.MethodGet, dash.Path, nil)
	r.Header.Set("If-None-Match", tag)
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("with the tag %s: %d", tag, w.Code)
	}
}

// TestPaths checks where a handler may stand.
func TestPaths(t *testing.T) {
	h := dash.Handler(dash.Config{Control: newShop(t, control.Config{}).control})
	mux := http.NewServeMux()
	mux.Handle(dash.Path, h)
	mux.Handle("/elsewhere/", http.StripPrefix("/elsewhere/", h))
	for path, code := range map[string]int{
		dash.Path: 200, dash.Path + "status": 200, strings.TrimSuffix(dash.Path, "/"): 301,
		"/elsewhere/": 200, "/elsewhere/status": 200, "/elsewhere/app.js": 200,
		dash.Path + "../../etc/passwd": 301, dash.Path + "assets": 404, dash.Path + "a/b": 404,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code/100 != code/100 {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
}

package dash

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/foresay/foresay/control"
)

// TestWatchEnds checks that a handler that nobody refers to is not sampled on.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := control.New(control.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := Handler(Config{Control: c}).(*handler)
		time.Sleep(11 * time.Second)
		if n := len(h.source.feed.since(new(cursor)).points); n != 5 {
			t.Errorf("%d points in 11 s", n)
		}
		w := weak.Make(h.source)
		runtime.KeepAlive(h)
		h = nil
		runtime.GC()
		time.Sleep(3 * time.Second)
		runtime.GC()
		if w.Value() != nil {
			t.Error("the handler's source is still there")
		}
	})
}

// TestSwitchShows checks that pages see at once what was switched, and not when the status is due.
func TestSwitchShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := control.New(control.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := Handler(Config{Control: c, Authorize: func(*http.Request) error { return nil }}).(*handler)
		var page cursor
		h.source.refresh(time.Now())
		h.source.feed.since(&page)
		post := httptest.NewRequest(http.MethodPost, Path+"kill", strings.NewReader(`{"killed": true}`))
		post.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, post)
		if answer.Code != http.StatusNoContent {
			t.Fatal(answer.Code, answer.Body)
		}
		time.Sleep(streamEvery)
		h.source.refresh(time.Now())
		if b := h.source.feed.since(&page).status; !bytes.Contains(b, []byte(`"killed":true`)) {
			t.Errorf("after %v pages are told %q", streamEvery, b)
		}
		time.Sleep(streamEvery)
		h.source.refresh(time.Now())
		if b := h.source.feed.since(&page).status; b != nil {
			t.Errorf("and then again: %q", b)
		}
	})
}

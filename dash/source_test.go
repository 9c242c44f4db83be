package dash

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/foresay/foresay"
)

// TestWatchEnds checks that a handler that nobody refers to is not sampled on.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := foresay.NewControl(foresay.ControlConfig{})
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

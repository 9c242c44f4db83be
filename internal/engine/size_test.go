package engine

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/race"
)

// TestCallSiteSize: a site in use takes at most 16 KB besides what its predictors keep.
func TestCallSiteSize(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector values are larger")
	}
	c := mustControl(t, control.Config{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 500
	before := heap()
	for i := range n {
		s, err := c.NewCallSite(control.CallSiteConfig{Name: fmt.Sprint("/s/", i)}, "")
		if err != nil {
			t.Fatal(err)
		}
		for j := range uint64(2000) {
			var w Watched
			w.Begin(t.Context(), Operation{CallSite: s, Transport: digesting{fakeTransport{}, j + 1}})
			w.Done("x", nil)
		}
	}
	if each := (heap() - before) / n; each > 16<<10 {
		t.Errorf("a site takes %d bytes", each)
	} else {
		t.Logf("a site takes %d bytes", each)
	}
	runtime.KeepAlive(c)
}

// TestSizeOfTask: a task is allocated at once, and its size is a good part of what a short one
// costs. The allocator has room for 3,064 bytes and a header of 8, and next for 4,096.
func TestSizeOfTask(t *testing.T) {
	if size := unsafe.Sizeof(task{}); size > 3064 {
		t.Errorf("a task has %d bytes, want at most 3064", size)
	}
}

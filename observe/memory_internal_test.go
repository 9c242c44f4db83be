package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
)

// TestMemory: the histograms, which are nearly all of it, take what the package's documentation
// says.
func TestMemory(t *testing.T) {
	measure := func(kinds, methods int, all bool) (bytes int) {
		c, err := NewCollector(Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range kinds {
			for mode := control.ModeObserve; mode <= control.ModeOn; mode++ {
				r := strand(methods, methods)
				r.Name = fmt.Sprint("GET /", i)
				if all {
					r.Arm = control.ArmOff + control.Arm(mode%2)
					r.Calls[0].Effect, r.Calls[0].Mode = control.EffectImmediate, mode
				}
				c.Record(r)
			}
			if all { // one that is not worked out
				r := strand(1000, methods)
				r.Name = fmt.Sprint("GET /", i)
				c.Record(r)
			}
		}
		for _, k := range c.kinds {
			hs := []*histogram{&k.observed, &k.without, &k.ifReads, &k.unworked, &k.speculated, &k.arms[0].latency,
				&k.arms[1].latency}
			for _, m := range k.order {
				hs = append(hs, &m.latency)
			}
			for _, h := range hs {
				if h.h != nil {
					bytes += h.h.ByteSize()
				} else if all {
					t.Error("a histogram is not used, though all should be")
				}
			}
		}
		return bytes
	}
	for _, test := range []struct {
		kinds, methods int
		all            bool
		least, most    int
	}{{5, 4, false, 600_000, 640_000}, {100, 100, true, 15_000_000, 17_000_000}} {
		start := time.Now()
		if got := measure(test.kinds, test.methods, test.all); got < test.least || got > test.most {
			t.Errorf("%d kinds of %d methods: %d bytes, want %d to %d", test.kinds, test.methods, got, test.least, test.most)
		} else {
			t.Logf("%d kinds of %d methods: %d bytes (%v)", test.kinds, test.methods, got, time.Since(start))
		}
	}
}

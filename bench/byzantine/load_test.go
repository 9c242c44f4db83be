package byzantine

import (
	"testing"
	"time"
)

// TestLoad: each kind of load is served, and guesses are right.
func TestLoad(t *testing.T) {
	for _, l := range []Load{
		{System: System{plain, 1}, Variant: Plain, Clients: 2},
		{System: System{plain, 1}, Variant: Firsts, Clients: 2},
		{System: System{plain, 1}, Variant: Engine, Clients: 2},
		{System: System{cs, 4}, Variant: Unchecked, Clients: 2},
		{System: System{cs, 4}, Variant: Speculated, Clients: 2},
		{System: System{zyz, 1}, Variant: Plain, Clients: 2, Durable: true},
		{System: System{plain, 1}, Variant: Plain, Clients: 2, Pipelined: 32},
	} {
		l.Dir, l.For = t.TempDir(), 300*time.Millisecond
		r, err := l.Measure(t.Context())
		if err != nil || r.Calls == 0 || r.Aborted > 0 {
			t.Errorf("%+v: %+v, %v", l, r, err)
		}
		t.Logf("%v %s clients=%d pipelined=%d durable=%v: %.0f per s", l.System, l.Variant, l.Clients, l.Pipelined, l.Durable,
			r.PerSecond())
	}
}

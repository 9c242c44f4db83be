package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live, garbage uint64
		want          int
	}{
		{0, 64 * mb, 100}, {20 * mb, 64 * mb, 100}, {64 * mb, 64 * mb, 100}, {128 * mb, 64 * mb, 50}, {320 * mb, 64 * mb, 20},
		{4000 * mb, 64 * mb, leastPercent},
	} {
		if got := boundedPercent(c.live, c.garbage); got != c.want {
			t.Errorf("%d MB in use, %d MB garbage: %d %%, want %d", c.live/mb, c.garbage/mb, got, c.want)
		}
	}
}

// TestBoundGarbage: what is in use decides, after each collection, and when it is over all is as
// before.
func TestBoundGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(90)
	defer debug.SetGCPercent(before)
	looks := make(chan int, 100)
	k := &keeper{garbage: 1 << 20, percent: boundedPercent, before: 90, looked: func(p int) { looks <- p }}
	k.watch()
	large := make([]byte, 64<<20)
	for p := 0; p != leastPercent; {
		runtime.GC()
		p = <-looks
	}
	runtime.KeepAlive(large)
	if k.stop(); debug.SetGCPercent(90) != 90 {
		t.Error("GOGC is not as before")
	}
	stop := BoundGarbage(1 << 20)
	debug.SetGCPercent(50)
	if stop(); debug.SetGCPercent(90) != 90 {
		t.Error("GOGC is not as before")
	}
	t.Setenv("GOGC", "200")
	if stop := BoundGarbage(1); debug.SetGCPercent(90) != 90 {
		t.Error("what the operator has set was changed")
	} else {
		stop()
	}
}

func TestAllowedPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live, garbage uint64
		want          int
	}{
		{0, 64 * mb, mostPercent}, {4 * mb, 64 * mb, mostPercent}, {16 * mb, 64 * mb, 400}, {64 * mb, 64 * mb, 100},
		{4000 * mb, 64 * mb, 100},
	} {
		if got := allowedPercent(c.live, c.garbage); got != c.want {
			t.Errorf("%d MB in use, %d MB garbage: %d %%, want %d", c.live/mb, c.garbage/mb, got, c.want)
		}
	}
}

// TestAllowGarbage: a process that holds little is collected less often, and is as before when it
// is over.
func TestAllowGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(90)
	defer debug.SetGCPercent(before)
	looks := make(chan int, 100)
	k := &keeper{garbage: 1 << 40, percent: allowedPercent, before: 90, looked: func(p int) { looks <- p }}
	k.watch()
	runtime.GC()
	if p := <-looks; p != mostPercent {
		t.Errorf("GOGC is %d, want %d", p, mostPercent)
	}
	if k.stop(); debug.SetGCPercent(90) != 90 {
		t.Error("GOGC is not as before")
	}
	stop := AllowGarbage(1 << 40)
	if stop(); debug.SetGCPercent(90) != 90 {
		t.Error("GOGC is not as before")
	}
}

// tests are those of a package that asks what GOGC is while they run.
type tests func() int

func (run tests) Run() int { return run() }

// TestRunTests: tests run with GOGC at TestsPercent, and leave it as it was.
func TestRunTests(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(90)
	defer debug.SetGCPercent(before)
	during := 0
	code := RunTests(tests(func() int {
		during = debug.SetGCPercent(TestsPercent)
		return 3
	}))
	if after := debug.SetGCPercent(90); code != 3 || during != TestsPercent || after != 90 {
		t.Errorf("exit code %d, GOGC %d while tests run, then %d; want 3, %d, 90", code, during, after, TestsPercent)
	}
}

// Package heap bounds the garbage of a process that holds much, and lets tests have more of it.
package heap

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// leastPercent is the least that GOGC is set to: the collector's work grows with what is in use.
const leastPercent = 10

// BoundGarbage has the collector run when there is so much garbage, and not only when there is as
// much as is in use, as Go does by default: of that a process that holds large values can have as
// much as of them. If GOGC or GOMEMLIMIT is set, it does nothing. stop ends it and puts back what
// was there.
func BoundGarbage(garbageBytes uint64) (stop func()) {
	return keep(garbageBytes, boundedPercent)
}

// AllowGarbage has the collector run only when there is so much garbage, while less than that is in
// use. Go's default has a process that holds little collect so often that it shows: each time there
// is as much as is in use. If GOGC or GOMEMLIMIT is set, it does nothing. stop ends it and puts
// back what was there.
func AllowGarbage(garbageBytes uint64) (stop func()) { return keep(garbageBytes, allowedPercent) }

func keep(garbageBytes uint64, percent func(live, garbage uint64) int) (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	k := &keeper{garbage: garbageBytes, percent: percent, before: debug.SetGCPercent(100)}
	debug.SetGCPercent(k.before)
	k.watch()
	return k.stop
}

type keeper struct {
	garbage uint64
	percent func(live, garbage uint64) int
	before  int               // GOGC
	looked  func(percent int) // nil but in tests

	mu      sync.Mutex
	stopped bool
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	debug.SetGCPercent(k.before)
}

// mark is an object that the next collection finds. Its pointer keeps it apart from other small
// ones.
type mark struct{ _ *mark }

// watch has adjust called after the next collection.
func (k *keeper) watch() { runtime.AddCleanup(&mark{}, (*keeper).adjust, k) }

func (k *keeper) adjust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	p := k.percent(live[0].Value.Uint64(), k.garbage)
	debug.SetGCPercent(p)
	k.watch()
	if k.looked != nil {
		k.looked(p)
	}
}

// boundedPercent returns what GOGC is to be with so many bytes in use, that there is about so much
// garbage at most.
func boundedPercent(live, garbage uint64) int {
	return int(min(100, max(leastPercent, 100*garbage/max(live, 1))))
}

// mostPercent is the most that GOGC is set to: with little in use the collector is idle then
// anyway.
const mostPercent = 800

// allowedPercent returns what GOGC is to be with so many bytes in use, that there may be so much
// garbage, and as much as is in use in any case.
func allowedPercent(live, garbage uint64) int {
	return int(max(100, min(mostPercent, 100*garbage/max(live, 1))))
}

// TestsPercent is what GOGC is for tests.
const TestsPercent = 800

// RunTests runs the tests of a package for its TestMain, and returns the exit code. They hold
// little and make much garbage, so that collecting it at Go's usual pace takes up to a third of
// their time: it is collected less often. Benchmarks run as they would without, and if GOGC or
// GOMEMLIMIT is set nothing changes.
func RunTests(m interface{ Run() int }) (code int) {
	flag.Parse()
	bench := flag.Lookup("test.bench")
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" && (bench == nil || bench.Value.String() == "") {
		defer debug.SetGCPercent(debug.SetGCPercent(TestsPercent))
	}
	return m.Run()
}

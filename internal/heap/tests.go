package heap

import (
	"flag"
	"os"
	"runtime/debug"
)

// TestsPercent is what GOGC is for tests.
const TestsPercent = 400

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

package domino_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// BenchmarkCommands is the work of all nodes for one 16-byte write.
func BenchmarkCommands(b *testing.B) {
	smrtest.Benchmark(b, domino.Direct(), 5*time.Millisecond, func() smr.StateMachine {
		return kv.New()
	}, func(n int) []byte {
		return kv.Put(fmt.Appendf(nil, "%07d", n%100_000), []byte("1234"))
	})
}

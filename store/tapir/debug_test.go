package tapir

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

func TestDebugSeed(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("DBG"), 10, 64)
	if seed == 0 {
		t.Skip()
	}
	sc := storetest.Swarm(seed)
	sc.Test = "x"
	if seed%5 == 3 {
		sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
	}
	var b bytes.Buffer
	sc.Trace = &b
	_, err := storetest.PlayOnce(subject(), sc)
	os.WriteFile("/tmp/tapir-trace", b.Bytes(), 0o644)
	if err != nil {
		e := err.Error()
		t.Log(e[:min(len(e), 600)], e[max(0, len(e)-300):])
	}
}

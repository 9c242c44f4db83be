package str

import (
	"os"
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

func TestDebug(t *testing.T) {
	f, _ := os.Create("/tmp/str.trace")
	defer f.Close()
	var n uint64
	for _, c := range os.Getenv("DSEED") {
		n = n*10 + uint64(c-'0')
	}
	m := modes()[0]
	if os.Getenv("DMODE") != "" {
		m = modes()[1]
	}
	s := subject(m)
	sc := storetest.Swarm(n)
	if s.Protocol.Partial && n%5 == 3 {
		sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
	}
	sc.Replaces = s.Protocol.Leads && n%5 == 4
	sc.Stale, sc.Moves = s.Protocol.Stale && n%3 == 2, s.Protocol.Leads && n%5 == 1
	sc.Trace = f
	_, err := storetest.PlayOnce(s, sc)
	t.Log(err)
}

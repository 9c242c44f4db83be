package catalog_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// The client nodes of all protocols keep commands of so many bytes, or a larger one alone; the rest
// is rejected at once. What was given up makes room.
func TestClientsBoundBytes(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := catalog.Protocol(name)
			if err != nil {
				t.Fatal(err)
			}
			node, err := p.NewClient(smr.ClientConfig{ID: 70000, Members: []smr.Member{{ID: 1}}, MaxPendingBytes: 10})
			if err != nil {
				t.Fatal(err)
			}
			env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			env.Begin(0)
			node.Start(env, nil)
			var id smr.CallID
			tell := func(msg smr.Message) (rejected bool) {
				env.Begin(0)
				node.Receive(env, protocol.App, msg)
				for _, e := range env.Out {
					if d, ok := e.Msg.(smr.Done); ok && d.Outcome == smr.Rejected && strings.Contains(d.Reason, "overload") {
						rejected = true
					}
				}
				return rejected
			}
			call := func(bytes int, rejected bool) smr.CallID {
				t.Helper()
				id++
				if got := tell(smr.Call{ID: id, Kind: smr.Execute, Command: make([]byte, bytes)}); got != rejected {
					t.Errorf("%d bytes: rejected is %v, want %v", bytes, got, rejected)
				}
				return id
			}
			large := call(20, false)
			call(1, true)
			tell(smr.Cancel{ID: large})
			call(6, false)
			four := call(4, false)
			call(1, true)
			tell(smr.Cancel{ID: four})
			call(4, false)
		})
	}
}

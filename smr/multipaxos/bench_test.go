package multipaxos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/wan"
)

// BenchmarkCommands is the work of all nodes for one 16-byte write, in one thread: three replicas,
// and clients that keep so many writes under way. Without a codec it is the protocol's own.
func BenchmarkCommands(b *testing.B) {
	for _, codec := range []bool{false, true} {
		for _, pending := range []int{1, 100, 2000} {
			b.Run(fmt.Sprintf("codec=%v/pending=%d", codec, pending), func(b *testing.B) { benchmark(b, codec, pending) })
		}
	}
}

func benchmark(b *testing.B, codec bool, pending int) {
	done, calls := 0, smr.CallID(0)
	var s *sim.Sim[smr.Message]
	next := func() {
		calls++
		s.Deliver(9, smr.Call{ID: calls, Kind: smr.Propose, Command: kv.Put(fmt.Appendf(nil, "%07d", calls%100_000), []byte("1234"))})
	}
	cfg := sim.Config[smr.Message]{
		Seed: 1, WAN: wan.Uniform(time.Millisecond, "a", "b", "c"), CheckEvery: 1 << 30, TraceKeep: -1,
		App: func(_ protocol.ID, msg smr.Message) {
			if d, ok := msg.(smr.Done); ok {
				if d.Outcome != smr.Committed {
					b.Fatalf("%+v", d)
				}
				done++
				next()
			}
		},
	}
	p := multipaxos.Protocol()
	if codec {
		cfg.Codec = p.Codec
	}
	s, err := sim.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	group := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	add := func(id protocol.ID, site wan.Site, make func() (protocol.Node[smr.Message], error)) {
		if err := s.Add(sim.Node[smr.Message]{ID: id, Site: site, New: func() protocol.Node[smr.Message] {
			n, err := make()
			if err != nil {
				b.Fatal(err)
			}
			return n
		}}); err != nil {
			b.Fatal(err)
		}
	}
	for i, m := range group {
		add(m.ID, []wan.Site{"a", "b", "c"}[i], func() (protocol.Node[smr.Message], error) {
			return p.NewReplica(smr.ReplicaConfig{ID: m.ID, Members: group, Machine: kv.New(), Leader: 1})
		})
	}
	add(9, "a", func() (protocol.Node[smr.Message], error) {
		return p.NewClient(smr.ClientConfig{ID: 9, Members: group})
	})
	if err := s.Run(2 * time.Second); err != nil {
		b.Fatal(err)
	}
	for range pending {
		next()
	}
	run := func(n int) {
		for done = 0; done < n && s.Step(); {
		}
		if s.Err() != nil {
			b.Fatal(s.Err())
		}
	}
	run(pending)
	steps := s.Steps()
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
	b.ReportMetric(float64(s.Steps()-steps)/float64(b.N), "steps/op")
}

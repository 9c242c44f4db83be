package waldisk_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

// writer writes a record for each of its messages, and is told by itself when that is durable.
type writer struct {
	record string
	goal   int
	found  int
}

func (n *writer) Start(env *protocol.Env[string], _ []protocol.Record[string]) {}

func (n *writer) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	if from != protocol.App {
		if n.found++; n.found == n.goal {
			env.Send(protocol.App, "done")
		}
	}
	i := env.Append(n.record)
	if i%10000 == 0 {
		env.Truncate(i)
	}
	env.Send(1, msg)
}

func (n *writer) Expire(*protocol.Env[string], protocol.Timer) {}

// BenchmarkWrites measures durable records of 16 bytes, of nodes that have a number of them on
// their way each.
func BenchmarkWrites(b *testing.B) {
	for _, c := range []struct{ nodes, window int }{{1, 1}, {1, 1024}, {4, 256}} {
		b.Run(fmt.Sprintf("nodes=%d/window=%d", c.nodes, c.window), func(b *testing.B) {
			store, err := wal.Open(b.TempDir(), wal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			h, err := host.New(host.Config{Network: transport.Config{Cluster: "bench", Insecure: true}})
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan string, c.nodes)
			var nodes []*host.Node[string]
			for g := range c.nodes {
				disk, err := waldisk.New(store, fmt.Sprint(g))
				if err != nil {
					b.Fatal(err)
				}
				n, err := host.Add(h, host.Spec[string]{
					Group: transport.Group(g), ID: 1, Codec: texts{}, Disk: disk, App: func(msg string) { done <- msg },
					Node: &writer{record: "0123456789abcdef", goal: (b.N + c.nodes - 1) / c.nodes},
				})
				if err != nil {
					b.Fatal(err)
				}
				nodes = append(nodes, n)
			}
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- h.Run(ctx) }()
			b.ReportAllocs()
			b.ResetTimer()
			for _, n := range nodes {
				for range c.window {
					if err := n.Deliver(ctx, "go"); err != nil {
						b.Fatal(err)
					}
				}
			}
			for range nodes {
				<-done
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			s := nodes[0].Stats()
			b.ReportMetric(float64(s.Records)/float64(s.Commits), "records/commit")
			b.ReportMetric(float64(s.CommitLatency.Mean().Microseconds()), "commit-us")
			stop()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

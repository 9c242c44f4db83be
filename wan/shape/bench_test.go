package shape_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

// BenchmarkMessage is the cost of a message of 128 bytes, with a thousand under way: written,
// delayed, read.
func BenchmarkMessage(b *testing.B) {
	for name, newNetwork := range backEnds() {
		b.Run(name, func(b *testing.B) {
			n := newNetwork(wan.Uniform(2*time.Millisecond, "a", "b"), 1)
			defer n.Close()
			from, to := pair(b, n)
			b.ReportAllocs()
			go func() {
				msg := make([]byte, 128)
				for range b.N {
					if _, err := from.Write(msg); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, to, int64(b.N)*128); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkEcho reports how much longer than configured a round trip of 128 bytes takes.
func BenchmarkEcho(b *testing.B) {
	for name, newNetwork := range backEnds() {
		for _, rtt := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/%v", name, rtt), func(b *testing.B) {
				n := newNetwork(wan.Uniform(rtt, "a", "b"), 1)
				defer n.Close()
				from, to := pair(b, n)
				go io.Copy(to, to)
				msg := make([]byte, 128)
				rounds := 0
				for b.Loop() {
					rounds++
					if _, err := from.Write(msg); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(from, msg); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed()/time.Duration(rounds)-rtt)/2e3, "us-late/one-way")
			})
		}
	}
}

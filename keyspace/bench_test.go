package keyspace

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// benchWorld has so many keys of eight bytes with values of 64, and a checkpoint.
func benchWorld(b *testing.B, keys int) *world {
	w := newWorld(b)
	for done := 0; done < keys; {
		l := w.state.Push()
		for range min(10_000, keys-done) {
			l.Put(benchKey(done), make([]byte, 64))
			done++
		}
		w.state.Merge()
		w.end()
	}
	w.state.Checkpoint(1)
	w.end()
	return w
}

// benchKey returns the key of a number; keys that follow each other are far apart in the tree.
func benchKey(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15) }

// BenchmarkChanges puts 64 keys into a layer and merges it, without what the disk then costs.
func BenchmarkChanges(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			w, i := benchWorld(b, keys), 0
			b.ReportAllocs()
			for b.Loop() {
				l := w.state.Push()
				for range 64 {
					i++
					l.Put(benchKey(i*7919%keys), []byte("another value"))
				}
				w.state.Merge()
				b.StopTimer()
				w.end()
				b.StartTimer()
			}
			b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// BenchmarkCheckpoint makes a checkpoint of what has changed since the last one.
func BenchmarkCheckpoint(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		w, i, n := benchWorld(b, keys), 0, uint64(1)
		for _, changed := range []int{1, 128, 1000} {
			b.Run(fmt.Sprintf("keys=%d/changed=%d", keys, changed), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					l := w.state.Push()
					for range changed {
						i++
						l.Put(benchKey(i*7919%keys), binary.BigEndian.AppendUint64(nil, uint64(i)))
					}
					w.state.Merge()
					w.state.Release(n)
					w.end()
					n++
					b.StartTimer()
					w.state.Checkpoint(n)
					b.StopTimer()
					w.end()
					b.StartTimer()
				}
				b.ReportMetric(float64(changed)*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
			})
		}
	}
}

// BenchmarkGet reads through many layers.
func BenchmarkGet(b *testing.B) {
	w := benchWorld(b, 1000)
	var l *Layer
	for i := range 1024 {
		l = w.state.Push()
		l.Put(benchKey(i%1000), nil)
	}
	key := benchKey(5)
	b.ReportAllocs()
	for b.Loop() {
		l.Get(key)
	}
}

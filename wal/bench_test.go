package wal

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countFS counts syncs of a real disk, and bytes that are written if written is not nil.
type countFS struct {
	vfs.FS
	syncs, written *atomic.Int64
}

func (fs countFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return countFile{f, fs.syncs, fs.written}, err
}

func (fs countFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, c)
	return countFile{f, fs.syncs, fs.written}, err
}

type countFile struct {
	vfs.File
	syncs, written *atomic.Int64
}

func (f countFile) Write(p []byte) (int, error) {
	if f.written != nil {
		f.written.Add(int64(len(p)))
	}
	return f.File.Write(p)
}

func (f countFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f countFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}

// committer is what the benchmark measures: a store, or the log of files that it was compared with.
type committer interface {
	commit(node int, index uint64, record []byte, done func(error))
	Close() error
}

type storeCommitter struct {
	*Store
	nodes []*Node
}

func newStoreCommitter(fs vfs.FS, dir string, nodes int, opts Options) (committer, error) {
	opts.FS = fs
	s, err := Open(dir, opts)
	if err != nil {
		return nil, err
	}
	c := &storeCommitter{Store: s}
	for i := range nodes {
		n, err := s.Node(fmt.Sprintf("node-%d", i))
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

func (c *storeCommitter) commit(node int, index uint64, record []byte, done func(error)) {
	var b Batch
	b.Append(index, record)
	if index%1000 == 0 {
		b.Truncate(index - 500)
	}
	c.nodes[node].Commit(&b, done)
}

// BenchmarkCommit is a node that commits a record, waits until it is durable, and commits the next;
// and many such nodes at once.
func BenchmarkCommit(b *testing.B) {
	for _, system := range []struct {
		name string
		open func(fs vfs.FS, dir string, nodes int) (committer, error)
	}{
		{"pebble", func(fs vfs.FS, dir string, nodes int) (committer, error) {
			return newStoreCommitter(fs, dir, nodes, Options{})
		}},
		{"segments", newSegmentCommitter},
		{"pebble-nosync", func(fs vfs.FS, dir string, nodes int) (committer, error) {
			return newStoreCommitter(fs, dir, nodes, Options{NoSync: true})
		}},
	} {
		for _, nodes := range []int{1, 16, 256} {
			for _, size := range []int{64, 4096} {
				b.Run(fmt.Sprintf("%s/nodes=%d/record=%d", system.name, nodes, size), func(b *testing.B) {
					benchmarkCommit(b, system.open, nodes, size)
				})
			}
		}
	}
}

// cpu returns how much processor time the process has used: unlike the time, it does not depend on
// who else uses the machine.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkReplicas is three replicas on a disk of their own each, which log batches of 100 writes
// of 16 bytes and apply them to their keys, with 4 batches under way. An op is a write that all
// three have durably.
func BenchmarkReplicas(b *testing.B) {
	const writes, window = 100, 4
	var nodes []*Node
	var syncs atomic.Int64
	for range 3 {
		c, err := newStoreCommitter(countFS{vfs.Default, &syncs, nil}, b.TempDir(), 1, Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		nodes = append(nodes, c.(*storeCommitter).nodes[0])
	}
	syncs.Store(0)
	start, before := time.Now(), cpu()
	b.ResetTimer()
	slots := make(chan struct{}, window)
	for at := 0; at < b.N; at += writes {
		slots <- struct{}{}
		var missing atomic.Int32
		missing.Store(int32(len(nodes)))
		for _, n := range nodes {
			var batch Batch
			index := n.NextIndex()
			batch.Append(index, make([]byte, writes*24))
			if index%100 == 0 {
				batch.Truncate(index - 50)
			}
			for i := range writes {
				batch.Put(binary.BigEndian.AppendUint64(nil, uint64(at+i)*0x9e3779b97f4a7c15%100_000), make([]byte, 16))
			}
			n.Commit(&batch, func(err error) {
				if err != nil {
					b.Error(err)
				}
				if missing.Add(-1) == 0 {
					<-slots
				}
			})
		}
	}
	for range window {
		slots <- struct{}{}
	}
	b.StopTimer()
	seconds := time.Since(start).Seconds()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/seconds, "ops/s")
	b.ReportMetric(float64(syncs.Load())/seconds, "fsyncs/s")
}

// largeLog is a node that logs values, groupRecords in a commit, and after logBytes of them writes
// as much as a snapshot, by parts of partBytes, in place of the one before, and truncates its log.
type largeLog struct{ recordBytes, groupRecords, logBytes, partBytes int }

// write logs as many records, of data that has the bytes of a part.
func (l largeLog) write(t testing.TB, n *Node, records int, data []byte) {
	commit := func(batch *Batch) {
		done := make(chan error, 1)
		n.Commit(batch, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	logged, area := 0, 0
	for at := 0; at < records; at += l.groupRecords {
		var batch Batch
		for k := range l.groupRecords {
			batch.Append(uint64(at+k+1), data[:l.recordBytes])
		}
		commit(&batch)
		if logged += l.groupRecords * l.recordBytes; logged < l.logBytes {
			continue
		}
		for k := range l.logBytes / l.partBytes {
			batch.Put(fmt.Appendf(nil, "area-%d/%04d", area, k), data)
			batch.Delete(fmt.Appendf(nil, "area-%d/%04d", 1-area, k))
			commit(&batch)
		}
		batch.Truncate(n.NextIndex())
		commit(&batch)
		logged, area = 0, 1-area
	}
}

// BenchmarkLargeRecords is a largeLog of values of 64 KiB. An op is a value. Bytes that compress
// well are what a database writes anew most often.
func BenchmarkLargeRecords(b *testing.B) {
	l := largeLog{recordBytes: 64 << 10, groupRecords: 8, logBytes: 32 << 20, partBytes: 256 << 10}
	for _, content := range []string{"zeros", "random"} {
		b.Run(content, func(b *testing.B) {
			var syncs, written atomic.Int64
			c, err := newStoreCommitter(countFS{vfs.Default, &syncs, &written}, b.TempDir(), 1, Options{})
			if err != nil {
				b.Fatal(err)
			}
			data := make([]byte, l.partBytes)
			if content == "random" {
				_, _ = rand.NewChaCha8([32]byte{}).Read(data) // it never fails
			}
			before := cpu()
			b.ResetTimer()
			l.write(b, c.(*storeCommitter).nodes[0], b.N, data)
			b.StopTimer()
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(written.Load()>>10)/float64(b.N), "KiB-written/op")
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchmarkCommit(b *testing.B, open func(vfs.FS, string, int) (committer, error), nodes, size int) {
	var syncs atomic.Int64
	c, err := open(countFS{vfs.Default, &syncs, nil}, b.TempDir(), nodes)
	if err != nil {
		b.Fatal(err)
	}
	record := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	syncs.Store(0)
	start, before := time.Now(), cpu()
	b.ResetTimer()
	var wait sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	for n := range nodes {
		wait.Go(func() {
			durable := make(chan error, 1)
			for index := uint64(1); left.Add(-1) >= 0; index++ {
				c.commit(n, index, record, func(err error) { durable <- err })
				if err := <-durable; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	seconds := time.Since(start).Seconds()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/seconds, "ops/s")
	b.ReportMetric(float64(syncs.Load())/seconds, "fsyncs/s")
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}

package host

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/transport"
)

// Stats is what a host has done since it was made.
type Stats struct {
	Nodes   []NodeStats // in the order in which they were added
	Network transport.Stats
}

// NodeStats is what a node has done since it was added.
type NodeStats struct {
	Addr  transport.Addr
	Steps uint64 // calls of the node
	// Queued messages and bytes have arrived and were not looked at; Held messages wait for the
	// disk.
	Queued      int
	QueuedBytes int
	Held        int
	// Dropped messages came to a full queue, Malformed ones could not be decoded.
	Dropped   uint64
	Malformed uint64
	// Commits to the disk, the operations in them, and the records among these.
	Commits uint64
	Ops     uint64
	Records uint64
	// CommitLatency is how long commits took until they were durable.
	CommitLatency Histogram
}

// A Histogram counts durations: Counts[i] of those below 2^i microseconds that are not below
// 2^(i-1).
type Histogram struct {
	Counts [32]uint64
	Sum    time.Duration
}

// Count returns how many durations were counted.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Mean returns the mean duration, 0 if there was none.
func (h Histogram) Mean() time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	return h.Sum / time.Duration(n)
}

// Quantile returns a duration that the share q of all, from 0 to 1, does not exceed: up to twice
// the least such one.
func (h Histogram) Quantile(q float64) time.Duration {
	want := uint64(q * float64(h.Count()))
	var sum uint64
	for i, c := range h.Counts {
		if sum += c; sum >= want && sum > 0 {
			return time.Duration(1<<i) * time.Microsecond
		}
	}
	return 0
}

type histogram struct {
	counts [32]atomic.Uint64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := bits.Len64(uint64(max(d, 0) / time.Microsecond))
	h.counts[min(i, len(h.counts)-1)].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() Histogram {
	out := Histogram{Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		out.Counts[i] = h.counts[i].Load()
	}
	return out
}

// nodeCounters are written by the node's goroutine and the disk's.
type nodeCounters struct {
	steps     atomic.Uint64
	malformed atomic.Uint64
	held      atomic.Int64
	commits   atomic.Uint64
	ops       atomic.Uint64
	records   atomic.Uint64
	latency   histogram
}

// publish shows what the goroutine has counted for itself.
func (n *Node[M]) publish() {
	n.stats.steps.Store(n.steps)
	n.stats.held.Store(int64(n.held.len()))
}

// Stats returns the present figures.
func (n *Node[M]) Stats() NodeStats {
	s := NodeStats{
		Addr: n.addr, Steps: n.stats.steps.Load(), Held: int(n.stats.held.Load()),
		Commits: n.stats.commits.Load(), Ops: n.stats.ops.Load(), Records: n.stats.records.Load(),
		CommitLatency: n.stats.latency.read(),
	}
	n.inbox.mu.Lock()
	defer n.inbox.mu.Unlock()
	s.Queued, s.QueuedBytes = len(n.inbox.queue), n.inbox.bytes
	s.Dropped, s.Malformed = n.inbox.dropped, n.stats.malformed.Load()
	return s
}

package observe

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Times are recorded in microseconds, from one to longest. What takes longer counts as longest.
	longest = time.Minute
	// digits: a bucket is at most 1 % wide, and quantiles lie within their bucket.
	digits = 2
)

// histogram is a distribution of times with its mean. The zero value is empty, and allocates when
// it is first used.
type histogram struct {
	h    *hdrhistogram.Histogram
	sum  time.Duration
	bars []hdrhistogram.Bar // of a snapshot, see freeze
}

func (h *histogram) add(d time.Duration) {
	if h.h == nil {
		h.h = hdrhistogram.New(1, longest.Microseconds(), digits)
	}
	d = max(d, 0)
	h.sum += d
	_ = h.h.RecordValue(min(d, longest).Microseconds()) // it is in the range
}

// freeze returns a copy to read from.
func (h *histogram) freeze() *histogram {
	c := &histogram{sum: h.sum}
	if h.h != nil {
		c.h = h.h.Clone()
	}
	return c
}

func (h *histogram) count() int64 {
	if h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// rank returns the value of a rank from 1 to count, in milliseconds. The values of a bucket are
// taken to be spread evenly over it. Only for a frozen histogram.
func (h *histogram) rank(r float64) float64 {
	if h.h == nil || h.h.TotalCount() == 0 {
		return 0
	}
	if h.bars == nil {
		for _, b := range h.h.Distribution() {
			if b.Count > 0 {
				h.bars = append(h.bars, b)
			}
		}
	}
	r = min(max(r, 1), float64(h.h.TotalCount()))
	before := 0.0
	for _, b := range h.bars {
		n := float64(b.Count)
		if r < before+n+1 {
			within := min((r-before-0.5)/n, 1)
			return (float64(b.From) + float64(b.To-b.From)*within) / 1e3
		}
		before += n
	}
	return float64(h.bars[len(h.bars)-1].To) / 1e3
}

// quantile returns the value below which a share of the values lies, in milliseconds.
func (h *histogram) quantile(share float64) float64 {
	return h.rank(share*float64(h.count()-1) + 1)
}

// latency summarises a frozen histogram.
func (h *histogram) latency() Latency {
	n := h.count()
	if n == 0 {
		return Latency{}
	}
	return Latency{
		Count: n, MeanMS: milliseconds(h.sum) / float64(n),
		P50MS: h.quantile(0.5), P95MS: h.quantile(0.95), P99MS: h.quantile(0.99),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/smr"
)

// Of returns the rows of a system and a kind of acknowledgement.
func Of(rows []Row, system System, ack smr.Ack) []Row {
	var out []Row
	for _, r := range rows {
		if r.System == system && r.Ack == ack {
			out = append(out, r)
		}
	}
	return out
}

// Quantile returns the latency that a share, in [0, 1], of the clients' weight does not exceed; the
// mean of two neighbours if it lies exactly between them. It is 0 without rows.
func Quantile(rows []Row, share float64) time.Duration {
	return quantile(rows, share, func(r Row) time.Duration { return r.Latency })
}

// LongestQuantile is Quantile of Row.Longest.
func LongestQuantile(rows []Row, share float64) time.Duration {
	return quantile(rows, share, func(r Row) time.Duration { return r.Longest })
}

func quantile(rows []Row, share float64, of func(Row) time.Duration) time.Duration {
	return weigh(rows, of).quantile(share)
}

// Mean returns the mean latency by the clients' weights, 0 without rows.
func Mean(rows []Row) time.Duration {
	return weigh(rows, func(r Row) time.Duration { return r.Latency }).mean()
}

// sample is latencies of clients.
type sample []weighted

type weighted struct {
	latency time.Duration
	weight  float64
}

func weigh(rows []Row, of func(Row) time.Duration) sample {
	s := make(sample, len(rows))
	for i, r := range rows {
		s[i] = weighted{of(r), r.Client.weight()}
	}
	return s
}

// quantile puts the sample in order.
func (s sample) quantile(share float64) time.Duration {
	slices.SortFunc(s, func(a, b weighted) int { return cmp.Compare(a.latency, b.latency) })
	total := 0.0
	for _, c := range s {
		total += c.weight
	}
	const tiny = 1e-9
	below, wanted := 0.0, share*total
	for i, c := range s {
		below += c.weight
		switch {
		case i == len(s)-1 || below > wanted+tiny*total:
			return c.latency
		case below >= wanted-tiny*total:
			return (c.latency + s[i+1].latency) / 2
		}
	}
	return 0
}

func (s sample) mean() time.Duration {
	sum, total := 0.0, 0.0
	for _, c := range s {
		sum += c.weight * float64(c.latency)
		total += c.weight
	}
	if total == 0 {
		return 0
	}
	return time.Duration(sum / total)
}

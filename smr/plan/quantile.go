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

// Quantile returns the latency that a share, in [0, 1], of the clients' weight does not exceed; the mean of two neighbours if it lies exactly between them. It is 0 without rows.
func Quantile(rows []Row, share float64) time.Duration {
	return quantile(rows, share, func(r Row) time.Duration { return r.Latency })
}

// LongestQuantile is Quantile of Row.Longest.
func LongestQuantile(rows []Row, share float64) time.Duration {
	return quantile(rows, share, func(r Row) time.Duration { return r.Longest })
}

func quantile(rows []Row, share float64, of func(Row) time.Duration) time.Duration {
	if len(rows) == 0 {
		return 0
	}
	sorted := slices.SortedStableFunc(slices.Values(rows), func(a, b Row) int { return cmp.Compare(of(a), of(b)) })
	total := 0.0
	for _, r := range rows {
		total += r.Client.weight()
	}
	const tiny = 1e-9
	below, wanted := 0.0, share*total
	for i, r := range sorted {
		below += r.Client.weight()
		switch {
		case i == len(sorted)-1 || below > wanted+tiny*total:
			return of(r)
		case below >= wanted-tiny*total:
			return (of(r) + of(sorted[i+1])) / 2
		}
	}
	return 0
}

// Mean returns the mean latency by the clients' weights, 0 without rows.
func Mean(rows []Row) time.Duration {
	sum, total := 0.0, 0.0
	for _, r := range rows {
		sum += r.Client.weight() * float64(r.Latency)
		total += r.Client.weight()
	}
	if total == 0 {
		return 0
	}
	return time.Duration(sum / total)
}

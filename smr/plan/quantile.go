package plan

import (
	"time"

	"github.com/foresay/foresay/internal/delays"
)

// Of returns the rows of a system and a moment.
func Of(rows []Row, system System, m Moment) []Row {
	var out []Row
	for _, r := range rows {
		if r.System == system && r.Until == m {
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
	return weigh(rows, of).Quantile(share)
}

// Mean returns the mean latency by the clients' weights, 0 without rows.
func Mean(rows []Row) time.Duration {
	return weigh(rows, func(r Row) time.Duration { return r.Latency }).Mean()
}

func weigh(rows []Row, of func(Row) time.Duration) delays.Sample {
	s := make(delays.Sample, len(rows))
	for i, r := range rows {
		s[i] = delays.Weighted{Latency: of(r), Weight: r.Client.weight()}
	}
	return s
}

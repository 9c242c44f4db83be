package table

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the q-quantile of sorted values by nearest rank: the smallest
// value that at least q of all are not above. It is 0 without values.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	// The subtraction keeps 0.9*10, which is just above 9 in binary, at rank 9.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle value, or the mean of the middle two; NaN without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// MedianOf returns the median of a figure of all values.
func MedianOf[T any](all []T, of func(T) float64) float64 {
	var figures []float64
	for _, v := range all {
		figures = append(figures, of(v))
	}
	return Median(figures)
}

// RatioOf returns the median, over the rounds, of the ratio of a figure to base's within a round.
func RatioOf[T any](own, base []T, of func(T) float64) float64 {
	var ratios []float64
	for i := range own {
		ratios = append(ratios, of(own[i])/of(base[i]))
	}
	return Median(ratios)
}

// Mean returns the mean of times, 0 without any.
func Mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(max(len(all), 1))
}

// LatencyCells returns the usual figures of latencies, which it sorts.
func LatencyCells(took []time.Duration) []Cell {
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return []Cell{
		Measure("mean_ms", Ms(sum)/float64(max(len(took), 1))), Measure("p50_ms", Ms(Quantile(took, 0.5))),
		Measure("p95_ms", Ms(Quantile(took, 0.95))), Measure("p99_ms", Ms(Quantile(took, 0.99))),
	}
}

// Ms returns d in milliseconds.
func Ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package table

import (
	"fmt"
	"math"
	"slices"
)

// MaxRepeats is how many repeats Means takes at most.
const MaxRepeats = 30

// student95 returns Student's t for a confidence of 95 % with n values: the 97.5 % quantile with
// n-1 degrees of freedom.
func student95(n int) float64 {
	return [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
		2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045}[n-2]
}

// Means returns the rows of repeats of one experiment as one set of rows, whose measures are means
// of the repeats that have them. A row says of how many repeats it is. Each of the named columns is
// followed by the half-width of its mean's confidence interval of 95 %, named NAME_ci95, if at
// least two repeats have it. All repeats must have the same rows, but for measures, and be at most
// MaxRepeats.
func Means(repeats [][]Row, intervals ...string) ([]Row, error) {
	if len(repeats) == 0 || len(repeats) > MaxRepeats {
		return nil, fmt.Errorf("table: %d repeats (want 1 to %d)", len(repeats), MaxRepeats)
	}
	var out []Row
	for i := range repeats[0] {
		var rows []Row
		for k, r := range repeats {
			if len(r) != len(repeats[0]) {
				return nil, fmt.Errorf("table: repeat %d has %d rows, the first one %d", k+1, len(r), len(repeats[0]))
			}
			rows = append(rows, r[i])
		}
		row, err := meanRow(rows, intervals)
		if err != nil {
			return nil, fmt.Errorf("table: row %d: %w", i+1, err)
		}
		out = append(out, row)
	}
	return out, nil
}

// meanRow returns the means of one row's repeats.
func meanRow(rows []Row, intervals []string) (out Row, err error) {
	for _, name := range columnsOf(rows) {
		var numbers []float64
		measured := false
		first := any(nil)
		for _, r := range rows {
			v := r.Value(name)
			if v == nil {
				continue
			}
			if n, ok := r.Number(name); ok {
				numbers = append(numbers, n)
			}
			if first == nil {
				first = v
			}
			_, text := v.(string)
			if measured = measured || v != first; text && v != first {
				return nil, fmt.Errorf("%s is %v and %v", name, first, v)
			}
		}
		if _, ok := first.(float64); !measured && !ok {
			out = append(out, Is(name, first))
			continue
		}
		mean, off := meanOf(numbers)
		if out = append(out, Measure(name, mean)); len(numbers) > 1 && slices.Contains(intervals, name) {
			out = append(out, Measure(name+"_ci95", off))
		}
	}
	return append(out, Is("seeds", len(rows))), nil
}

// meanOf returns the mean and the half-width of its interval.
func meanOf(numbers []float64) (mean, off float64) {
	n := float64(len(numbers))
	for _, x := range numbers {
		mean += x / n
	}
	if len(numbers) < 2 {
		return mean, 0
	}
	var squares float64
	for _, x := range numbers {
		squares += (x - mean) * (x - mean)
	}
	return mean, student95(len(numbers)) * math.Sqrt(squares/(n-1)/n)
}

package observe

import "math"

// z95 is the normal distribution's quantile for intervals that hold 95 %.
const z95 = 1.959963984540054

// wilson returns a share and its interval by Wilson's score.
func wilson(hits, n float64) Interval {
	if n <= 0 {
		return Interval{High: 1}
	}
	const z = z95
	share := hits / n
	mid := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z * math.Sqrt(share*(1-share)/n+z*z/(4*n*n)) / (1 + z*z/n)
	return Interval{share, max(mid-half, 0), min(mid+half, 1)}
}

// newcombe returns the difference a-b of two shares and its interval: Newcombe's hybrid score
// interval of 1998, method 10.
func newcombe(a, b Interval) Interval {
	d := a.Value - b.Value
	low := math.Hypot(a.Value-a.Low, b.High-b.Value)
	high := math.Hypot(a.High-a.Value, b.Value-b.Low)
	return Interval{d, d - low, d + high}
}

// moments are the count, mean and squared deviations of values, by Welford's recurrence.
type moments struct{ n, mean, squares float64 }

func (m *moments) add(v float64) {
	m.n++
	d := v - m.mean
	m.mean += d / m.n
	m.squares += d * (v - m.mean)
}

// meanVariance returns the variance of the mean.
func (m *moments) meanVariance() float64 { return m.squares / (m.n - 1) / m.n }

// welch returns the difference a-b of two means and its interval: Welch's. false: fewer than two
// values on a side.
func welch(a, b moments) (Interval, bool) {
	if a.n < 2 || b.n < 2 {
		return Interval{}, false
	}
	d, va, vb := a.mean-b.mean, a.meanVariance(), b.meanVariance()
	if va+vb == 0 {
		return Interval{d, d, d}, true
	}
	freedom := (va + vb) * (va + vb) / (va*va/(a.n-1) + vb*vb/(b.n-1))
	half := student(freedom) * math.Sqrt(va+vb)
	return Interval{d, d - half, d + half}, true
}

// student returns the quantile of Student's distribution for two-sided intervals that hold 95 %:
// exact for one and two degrees of freedom, between and above by the expansion in Abramowitz and
// Stegun, 26.7.5, within 0.5 %.
func student(freedom float64) float64 {
	const one, two = 12.706204736, 4.30265273
	switch {
	case freedom <= 1:
		return one
	case freedom < 2:
		return one + (freedom-1)*(two-one) // above the true value, which is convex
	}
	const z = z95
	const z3, z5, z7, z9 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z, z * z * z * z * z * z * z * z * z
	v := freedom
	t := z + (z3+z)/4/v + (5*z5+16*z3+3*z)/96/(v*v) + (3*z7+19*z5+17*z3-15*z)/384/(v*v*v) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/92160/(v*v*v*v)
	if v < 3 {
		const three = 3.182446305
		return two + (v-2)*(three-two)
	}
	return t
}

// fewestForMedian is how many values on a side an interval of medians needs.
const fewestForMedian = 10

// medians returns the difference a-b of two medians and its interval: Price and Bonett's of 2002,
// which takes each median's variance from the distance of two order statistics. false: too few
// values on a side.
func medians(a, b *histogram) (Interval, bool) {
	if a.count() < fewestForMedian || b.count() < fewestForMedian {
		return Interval{}, false
	}
	d := a.quantile(0.5) - b.quantile(0.5)
	half := z95 * math.Sqrt(a.medianVariance()+b.medianVariance())
	return Interval{d, d - half, d + half}, true
}

// medianVariance estimates the variance of the median.
func (h *histogram) medianVariance() float64 {
	n := float64(h.count())
	c := math.Max(1, math.Round((n+1)/2-math.Sqrt(n)))
	// The order statistics c and n-c+1 hold the median between them but for tail on each side.
	tail := binomialHalf(n, c-1)
	low, high := h.rank(c), h.rank(n-c+1)
	se := (high - low) / (2 * normalQuantile(1-tail))
	return se * se
}

// binomialHalf returns the probability of at most k heads in n throws of a coin.
func binomialHalf(n, k float64) float64 {
	if n > 1000 { // the normal approximation with continuity correction is good to 4 digits
		return 0.5 * math.Erfc(-(k+0.5-n/2)/(math.Sqrt(n)/2)/math.Sqrt2)
	}
	p := 0.0
	lgn, _ := math.Lgamma(n + 1)
	for i := 0.0; i <= k; i++ {
		a, _ := math.Lgamma(i + 1)
		b, _ := math.Lgamma(n - i + 1)
		p += math.Exp(lgn - a - b - n*math.Ln2)
	}
	return p
}

// normalQuantile returns the p-quantile of the normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

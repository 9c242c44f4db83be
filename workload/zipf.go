package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Zipf draws ranks from 0 to n-1, rank k with a probability in proportion to 1/(k+1)^alpha. An
// alpha of 0 is the uniform distribution, and values below 1 are what papers mostly use;
// math/rand's Zipf refuses them.
//
// It is the rejection-inversion of Hörmann and Derflinger (ACM TOMACS 6(3), 1996): no table, and
// about one draw for each rank.
type Zipf struct {
	n     uint64
	alpha float64
	// Bounds of the area under the hat, and what is accepted at once.
	low, high, squeeze float64
}

// NewZipf returns the distribution over n ranks. n is at least 1, alpha not negative and finite.
func NewZipf(n uint64, alpha float64) (*Zipf, error) {
	if n == 0 || n > 1<<53 {
		return nil, fmt.Errorf("workload: Zipf over %d ranks (want 1 to 2^53)", n)
	}
	if math.IsNaN(alpha) || alpha < 0 || alpha > 100 {
		return nil, fmt.Errorf("workload: Zipf with alpha %v (want 0 to 100)", alpha)
	}
	z := &Zipf{n: n, alpha: alpha}
	z.low = z.area(1.5) - 1
	z.high = z.area(float64(n) + 0.5)
	z.squeeze = 2 - z.inverse(z.area(2.5)-z.hat(2))
	return z, nil
}

// Rank draws a rank; 0 is the most popular.
func (z *Zipf) Rank(r *rand.Rand) uint64 {
	for {
		u := z.high + r.Float64()*(z.low-z.high)
		x := z.inverse(u)
		k := min(max(math.Round(x), 1), float64(z.n))
		if k-x <= z.squeeze || u >= z.area(k+0.5)-z.hat(k) {
			return uint64(k) - 1
		}
	}
}

// hat is 1/x^alpha.
func (z *Zipf) hat(x float64) float64 { return math.Exp(-z.alpha * math.Log(x)) }

// area is an integral of hat: (x^(1-alpha) - 1) / (1-alpha), and log x for alpha = 1.
func (z *Zipf) area(x float64) float64 {
	l := math.Log(x)
	return over((1-z.alpha)*l) * l
}

// inverse is the inverse of area.
func (z *Zipf) inverse(y float64) float64 {
	t := max(y*(1-z.alpha), -1)
	return math.Exp(logOver(t) * y)
}

// over is (e^x - 1)/x, and 1 at 0.
func over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3*(1+x/4))
}

// logOver is log(1+x)/x, and 1 at 0.
func logOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x*(1.0/3-x/4))
}

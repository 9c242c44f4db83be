package workload

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Keys draws keys, of which some are more popular than others. Popular keys are strewn over the
// space, so that no shard gets them all.
type Keys interface {
	// Draw returns the number of a key, from 0 to Len()-1.
	Draw(r *rand.Rand) uint64
	Len() uint64
}

// Name returns the key of a number: its decimal digits after a k.
func Name(key uint64) string { return "k" + strconv.FormatUint(key, 10) }

// Zipfian draws n keys with Zipf's distribution.
func Zipfian(n uint64, alpha float64) (Keys, error) {
	z, err := NewZipf(n, alpha)
	if err != nil {
		return nil, err
	}
	return zipfian{z}, nil
}

type zipfian struct{ z *Zipf }

func (k zipfian) Len() uint64              { return k.z.n }
func (k zipfian) Draw(r *rand.Rand) uint64 { return strew(k.z.Rank(r), k.z.n) }

// Hotspot draws one of the hot keys with the given chance, and one of the others else, all of a
// kind alike.
type Hotspot struct {
	N, Hot uint64  // keys, and how many of them are hot. 0 < Hot < N.
	Chance float64 // of a hot one, from 0 to 1
}

// Len returns N.
func (h Hotspot) Len() uint64 { return h.N }

// Draw returns a key.
func (h Hotspot) Draw(r *rand.Rand) uint64 {
	if r.Float64() < h.Chance {
		return strew(r.Uint64N(h.Hot), h.N)
	}
	return strew(h.Hot+r.Uint64N(h.N-h.Hot), h.N)
}

// strew maps the numbers below n onto themselves, each to another place: a Feistel network over the
// next even power of two, walked until it comes back below n.
func strew(x, n uint64) uint64 {
	half := max(uint(bits.Len64(n-1)+1)/2, 1)
	mask := uint64(1)<<half - 1
	for {
		left, right := x>>half, x&mask
		for round := range uint64(3) {
			left, right = right, left^(mix(right+round*0x9e3779b97f4a7c15)&mask)
		}
		if x = left<<half | right; x < n {
			return x
		}
	}
}

// mix scatters the bits of a number (splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// distinct draws n different keys; fewer if there are not so many.
func distinct(keys Keys, r *rand.Rand, n int) []uint64 {
	n = int(min(uint64(n), keys.Len()))
	out := make([]uint64, 0, n)
	for misses := 0; len(out) < n; {
		k := keys.Draw(r)
		if misses > 64*n { // few keys have nearly all the weight: take the next one that is free
			for slices.Contains(out, k) {
				k = (k + 1) % keys.Len()
			}
		}
		if slices.Contains(out, k) {
			misses++
			continue
		}
		out = append(out, k)
	}
	return out
}

package randtest

import "strconv"

// chance draws numbers that depend on a seed and on what they are for, and on
// nothing else: not on how often anything was drawn before.
type chance uint64

// draw returns 64 bits for a purpose.
func (c chance) draw(purpose ...string) uint64 {
	h := mix(uint64(c))
	for _, p := range purpose {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * 0x100000001b3
		}
		h = mix(h + uint64(len(p)))
	}
	return h
}

// below returns a number in [0, n).
func (c chance) below(n int, purpose ...string) int { return int(c.draw(purpose...) % uint64(n)) }

// percent reports true in p of 100 cases.
func (c chance) percent(p int, purpose ...string) bool { return c.below(100, purpose...) < p }

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fold adds a result to the digest of all results so far.
func fold(digest, result string) string {
	h := chance(0x5eed).draw(digest, result)
	return strconv.FormatUint(h>>32, 36)
}

// choose picks one of n by a digest.
func choose(digest string, n int) int { return chance(0xc4005e).below(n, digest) }

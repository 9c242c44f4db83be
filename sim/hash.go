package sim

import (
	"encoding/binary"
	"math/bits"
)

// A hash is a running hash. It is fast, and good enough to tell runs apart that nobody made similar
// on purpose.
type hash uint64

func newHash(seed uint64) hash { return hash(mix(seed)) }

func (h *hash) add(x uint64) {
	hi, lo := bits.Mul64(uint64(*h)^x, 0x9e3779b97f4a7c15)
	*h = hash(bits.RotateLeft64(lo, 29) ^ hi ^ x)
}

func (h *hash) bytes(b []byte) {
	h.add(uint64(len(b)))
	for len(b) >= 8 {
		h.add(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var last uint64
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	h.add(last)
}

func (h *hash) sum() uint64 { return mix(uint64(*h)) }

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps a hash to [0, 1).
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

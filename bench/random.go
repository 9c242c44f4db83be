package bench

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
)

// random returns a generator that depends on the seed and on what it is for, so
// that no draw depends on how many others were made.
func Random(seed uint64, purpose ...uint64) *rand.Rand {
	h := fnv.New64a()
	for _, p := range purpose {
		h.Write(binary.LittleEndian.AppendUint64(nil, p))
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

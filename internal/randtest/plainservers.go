package randtest

import "math/rand/v2"

// choosePlainServers has some worlds have servers that know nothing of speculation,
// and clients that send them reads on a guess. It draws from numbers of its own, so
// that what else a seed decides stays.
func (k *knobs) choosePlainServers(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x91a1))
	if r.IntN(8) != 0 {
		return
	}
	for i := range k.Servers {
		k.Plain[i] = r.IntN(2) == 0
	}
	k.SendPlainly = r.IntN(4) != 0
}

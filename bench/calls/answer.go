package calls

import (
	"encoding/binary"
	"math/bits"
)

// payloadBytes is the size of the data that a call sends and receives: eight words.
const payloadBytes = 64

// The answer to a payload is a bijection of its words, so that no two chains
// meet and a server can compute its own answer from the next server's.
const (
	factor  = 0x9e3779b97f4a7c15
	inverse = 0xf1de83e19937733d // of factor, modulo 2^64
	shift   = 0x632be59bd9b4e019
	turn    = 23
)

// firstPayload makes the first argument of the chain that seed names.
func firstPayload(seed uint64) []byte {
	p := make([]byte, 0, payloadBytes)
	for i := range uint64(payloadBytes / 8) {
		p = binary.LittleEndian.AppendUint64(p, seed+i*factor)
	}
	return p
}

// answer returns what a server answers to the payload.
func answer(payload []byte) []byte {
	return mapWords(payload, func(w uint64) uint64 { return bits.RotateLeft64(w*factor, turn) + shift })
}

// question returns the payload that has the given answer.
func question(answer []byte) []byte {
	return mapWords(answer, func(w uint64) uint64 { return bits.RotateLeft64(w-shift, -turn) * inverse })
}

// wrongAnswer returns something as long as the answer to the payload that is not
// an answer of any chain in use.
func wrongAnswer(payload []byte) []byte {
	a := answer(payload)
	for i := range a {
		a[i] ^= 0x5a
	}
	return a
}

// mapWords maps the whole words of b; bytes beyond them are copied.
func mapWords(b []byte, f func(uint64) uint64) []byte {
	out := make([]byte, len(b))
	copy(out, b)
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(out[i:], f(binary.LittleEndian.Uint64(b[i:])))
	}
	return out
}

// lastAnswer returns what a chain of calls from seed ends with.
func lastAnswer(seed uint64, calls int) []byte {
	p := firstPayload(seed)
	for range calls {
		p = answer(p)
	}
	return p
}

package bft

import (
	"crypto/sha256"
	"encoding/binary"
	"sync" //pure:ok decoders run concurrently, and what is remembered changes nothing that they say
)

// proven is a Verifier that remembers what it has found right: a replica gets most requests twice,
// from their clients and in the primary's proposal, and checking a signature takes a hundred times
// as long as this. What is wrong is checked again, so that nobody fills the memory with it.
type proven struct {
	Verifier
	mu         sync.Mutex
	young, old map[Digest]struct{} // by a digest of all that was checked; old is forgotten first
}

// remembered is how many signatures each half of the memory has at most.
const remembered = 8192

func newProven(v Verifier) *proven { return &proven{Verifier: v, young: map[Digest]struct{}{}} }

// Verify is part of Verifier.
func (p *proven) Verify(key Key, message, signature []byte) bool {
	h := sha256.New()
	h.Write(key[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(message))))
	h.Write(message)
	h.Write(signature)
	d := Digest(h.Sum(nil))
	if p.knows(d) {
		return true
	}
	if !p.Verifier.Verify(key, message, signature) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.young) >= remembered {
		p.young, p.old = map[Digest]struct{}{}, p.young
	}
	p.young[d] = struct{}{}
	return true
}

func (p *proven) knows(d Digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, young := p.young[d]
	_, old := p.old[d]
	return young || old
}

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
	*memory
}

// memory has the signatures that were right.
type memory struct {
	mu         sync.Mutex
	young, old map[Digest]struct{} // by a digest of all that was checked; old is forgotten first
}

// remembered is how many signatures each half of the memory has at most.
const remembered = 8192

func newMemory() *memory { return &memory{young: map[Digest]struct{}{}} }

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
	p.add(d)
	return true
}

func (m *memory) add(d Digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= remembered {
		m.young, m.old = map[Digest]struct{}{}, m.young
	}
	m.young[d] = struct{}{}
}

func (m *memory) knows(d Digest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, young := m.young[d]
	_, old := m.old[d]
	return young || old
}

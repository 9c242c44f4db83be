package transport

import (
	"math/bits"
	"sync"
)

// buffers is a mem.BufferPool of gRPC's that does not clear what it hands out, as gRPC's own do:
// who gets a buffer here writes all of it before anything is read.
type buffers struct {
	sizes [maxBufferBits - minBufferBits + 1]sync.Pool // of *[]byte, by the power of two of their capacity
}

// Buffers of other sizes are not kept.
const (
	minBufferBits = 8
	maxBufferBits = 20
)

// frameBuffers are what frames are read into and put together in.
var frameBuffers = new(buffers)

// Get is part of mem.BufferPool.
func (p *buffers) Get(length int) *[]byte {
	n := max(minBufferBits, bits.Len(uint(max(1, length)-1)))
	if n > maxBufferBits {
		b := make([]byte, length)
		return &b
	}
	b, _ := p.sizes[n-minBufferBits].Get().(*[]byte)
	if b == nil {
		made := make([]byte, 1<<n)
		b = &made
	}
	*b = (*b)[:length]
	return b
}

// Put is part of mem.BufferPool.
func (p *buffers) Put(b *[]byte) {
	if n := bits.Len(uint(cap(*b))) - 1; n >= minBufferBits && n <= maxBufferBits {
		p.sizes[n-minBufferBits].Put(b)
	}
}

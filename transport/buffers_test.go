package transport

import "testing"

// TestBuffers: buffers have the length that was asked for, and those that are kept room for all
// that is asked of their size.
func TestBuffers(t *testing.T) {
	p := new(buffers)
	for length := 0; length < 3<<maxBufferBits; length = length*5/4 + 1 {
		b := p.Get(length)
		if len(*b) != length {
			t.Fatalf("a buffer of %d bytes, want %d", len(*b), length)
		}
		*b = (*b)[:length/2] // what gRPC gives back may be a prefix
		p.Put(b)
		for _, more := range []int{length, length + 1} {
			if b := p.Get(more); len(*b) != more {
				t.Fatalf("a buffer of %d bytes, want %d", len(*b), more)
			}
		}
	}
	small := make([]byte, 10)
	p.Put(&small)
	odd := make([]byte, 1000) // has room for all of 512 bytes only
	p.Put(&odd)
	for _, length := range []int{1, 256, 512, 513, 1000, 1024} {
		if b := p.Get(length); len(*b) != length {
			t.Errorf("a buffer of %d bytes, want %d", len(*b), length)
		}
	}
}

package sim

import "fmt"

// throughCodec decides whether the next message or record is to travel as bytes.
func (s *Sim[M]) throughCodec() bool {
	if s.config.Codec == nil {
		return false
	}
	if s.config.CodecChance == 1 {
		return true
	}
	s.codecDraws++
	return unit(mix(s.config.Seed^mix(s.codecDraws))) < s.config.CodecChance
}

// encode returns the bytes of a message, until the next call. They are part of the hash.
func (s *Sim[M]) encode(n *node[M], msg M) []byte {
	s.calling = n // for a codec that panics
	b, err := s.config.Codec.Append(s.buf[:0], msg)
	s.calling = nil
	if err != nil {
		s.fail(n, "codec", fmt.Errorf("encode %s: %w", describe(msg), err))
	}
	s.buf = b
	s.hash.bytes(b)
	return b
}

// pack returns a message as it arrives, and its size.
func (s *Sim[M]) pack(n *node[M], msg M) (M, int) {
	size := 0
	if s.throughCodec() {
		b := s.encode(n, msg)
		s.calling = n
		decoded, err := s.config.Codec.Decode(b)
		s.calling = nil
		if err != nil {
			s.fail(n, "codec", fmt.Errorf("decode what %s was encoded to: %w", describe(msg), err))
		}
		msg, size = decoded, len(b)
	}
	if s.config.SizeBytes != nil {
		size = s.config.SizeBytes(msg)
	}
	return msg, size
}

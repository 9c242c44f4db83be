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

// A packet is a message as it arrives.
type packet[M any] struct {
	msg       M
	coded     bool // it went through the codec
	sizeBytes int
}

func (s *Sim[M]) pack(n *node[M], msg M) packet[M] {
	p := packet[M]{msg: msg}
	if s.throughCodec() {
		b := s.encode(n, msg)
		p = packet[M]{s.decode(n, b), true, len(b)}
	}
	if s.config.SizeBytes != nil {
		p.sizeBytes = max(0, s.config.SizeBytes(p.msg))
	}
	return p
}

// another returns a packet again, which shares no memory with the first one if they went through
// the codec.
func (s *Sim[M]) another(n *node[M], p packet[M]) packet[M] {
	if p.coded {
		p.msg = s.decode(n, s.encode(n, p.msg))
	}
	return p
}

// decode returns the message of bytes that encode made.
func (s *Sim[M]) decode(n *node[M], b []byte) M {
	s.calling = n
	msg, err := s.config.Codec.Decode(b)
	s.calling = nil
	if err != nil {
		s.fail(n, "codec", fmt.Errorf("decode the message that was encoded to %s: %w", quoteBytes(b), err))
	}
	return msg
}

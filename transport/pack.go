package transport

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/foresay/foresay/protocol"
)

// A packed message is its group, sender, receiver and length as varints, and its bytes.

func pack(buf []byte, from Addr, to protocol.ID, payload []byte) []byte {
	return append(packHead(buf, from, to, len(payload)), payload...)
}

func packHead(buf []byte, from Addr, to protocol.ID, sizeBytes int) []byte {
	buf = binary.AppendUvarint(buf, uint64(from.Group))
	buf = binary.AppendUvarint(buf, uint64(from.ID))
	buf = binary.AppendUvarint(buf, uint64(to))
	return binary.AppendUvarint(buf, uint64(sizeBytes))
}

// unpack takes the first message from b. The payload is a part of b.
func unpack(b []byte) (from protocol.ID, to Addr, payload, rest []byte, err error) {
	var fields [4]uint64
	rest = b
	for i := range fields {
		v, n := binary.Uvarint(rest)
		if n <= 0 || v > math.MaxUint32 {
			return 0, Addr{}, nil, nil, fmt.Errorf("field %d of a message is cut off or too large", i)
		}
		fields[i], rest = v, rest[n:]
	}
	size := fields[3]
	if size > uint64(len(rest)) {
		return 0, Addr{}, nil, nil, fmt.Errorf("a message of %d bytes announced, %d left", size, len(rest))
	}
	return protocol.ID(fields[1]), Addr{Group(fields[0]), protocol.ID(fields[2])}, rest[:size:size], rest[size:], nil
}

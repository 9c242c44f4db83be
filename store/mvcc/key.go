package mvcc

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/store"
)

// Below a Store's prefix lie its versions, its marks and three numbers. A version's key is that of
// the value, escaped so that none is the beginning of another one, and then the version with all
// bits inverted: the newest one comes first, and what a snapshot sees is the first one from the
// snapshot's timestamp on. A mark's key is the version and then the key; it has no value.
const (
	versionPart = 'v'
	markPart    = 'm'
	horizonPart = 'h'
	ceilingPart = 'c'
	closedPart  = 'd'
)

// versionBytes is what a Version takes in a key.
const versionBytes = 16

// A zero byte of a key becomes zero, escaped; zero, terminator ends it. So keys keep their order.
const (
	terminator = 0x01
	escaped    = 0xff
)

// key returns the beginning of the keys of a part of the store, with room for more.
func (s Store) key(part byte, room int) []byte {
	k := make([]byte, 0, len(s.prefix)+1+room)
	return append(append(k, s.prefix...), part)
}

func appendKey(b []byte, key store.Key) []byte {
	for i := range len(key) {
		if b = append(b, key[i]); key[i] == 0 {
			b = append(b, escaped)
		}
	}
	return append(b, 0, terminator)
}

// takeKey is the opposite of appendKey: it returns the key that b begins with, and the rest.
func takeKey(b []byte) (key store.Key, rest []byte, ok bool) {
	var raw []byte
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return "", nil, false
		}
		raw = append(raw, b[:i]...)
		next := b[i+1]
		if b = b[i+2:]; next == terminator {
			return store.Key(raw), b, true
		}
		if next != escaped {
			return "", nil, false
		}
		raw = append(raw, 0)
	}
}

// versionsOf returns the beginning of the keys of a value's versions.
func (s Store) versionsOf(key store.Key) []byte {
	return appendKey(s.key(versionPart, len(key)+2+versionBytes), key)
}

// at returns the key of a version, of which begin is the beginning that versionsOf returns.
func at(begin []byte, v store.Version) []byte {
	b := append(make([]byte, 0, len(begin)+versionBytes), begin...)
	b = binary.BigEndian.AppendUint64(b, ^v.Time)
	return binary.BigEndian.AppendUint64(b, ^uint64(v.Client))
}

// end returns the key behind all of a value's versions, of which begin is the beginning.
func end(begin []byte) []byte {
	b := append([]byte(nil), begin...)
	b[len(b)-1] = terminator + 1 // which no key has there
	return b
}

// versionAt is the opposite of at.
func (s Store) versionAt(raw []byte) (store.Key, store.Version) {
	key, rest, ok := takeKey(raw[len(s.prefix)+1:])
	if !ok || len(rest) != versionBytes {
		panic(fmt.Sprintf("mvcc: %x is no version's key", raw)) // which runners stop at
	}
	time, client := binary.BigEndian.Uint64(rest), binary.BigEndian.Uint64(rest[8:])
	return key, store.Version{Time: ^time, Client: store.ClientID(^client)}
}

// mark returns the key of a mark.
func (s Store) mark(v store.Version, key store.Key) []byte {
	b := s.key(markPart, versionBytes+len(key)+2)
	b = binary.BigEndian.AppendUint64(b, v.Time)
	b = binary.BigEndian.AppendUint64(b, uint64(v.Client))
	return appendKey(b, key)
}

// markedAt is the opposite of mark, for the key.
func (s Store) markedAt(raw []byte) store.Key {
	key, rest, ok := takeKey(raw[len(s.prefix)+1+versionBytes:])
	if !ok || len(rest) > 0 {
		panic(fmt.Sprintf("mvcc: %x is no mark's key", raw)) // which runners stop at
	}
	return key
}

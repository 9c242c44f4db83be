package wal

import (
	"encoding/binary"
	"fmt"
)

// In the database a key is the length of the node's name in a byte, the name, the kind of the entry
// in a byte, and then
//
//	'k' and the node's key:               its value
//	'l' and nothing:                      the log's lowest index, as a uvarint; 1 if missing
//	'r' and the index, 8 bytes big-endian: the record
//
// The length comes first so that no node's entries lie between another's.
const (
	kindKey    = 'k'
	kindLow    = 'l'
	kindRecord = 'r'
)

// maxNameBytes is the longest name of a node.
const maxNameBytes = 255

func checkName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("a node's name has 1 to %d bytes, not %d", maxNameBytes, len(name))
	}
	return nil
}

// entryPrefix returns what a node's entries of a kind begin with.
func entryPrefix(name string, kind byte) []byte {
	buf := make([]byte, 0, 1+len(name)+1)
	buf = append(buf, byte(len(name)))
	buf = append(buf, name...)
	return append(buf, kind)
}

// prefixEnd returns the first key after all that begin with prefix, whose last byte is a kind and
// so not 255.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	end[len(end)-1]++
	return end
}

// entryName returns the name that an entry's key holds.
func entryName(key []byte) (string, error) {
	if len(key) == 0 || key[0] == 0 || len(key) < 1+int(key[0])+1 {
		return "", fmt.Errorf("the key %x names no node", key)
	}
	return string(key[1 : 1+int(key[0])]), nil
}

func appendIndex(buf []byte, index uint64) []byte { return binary.BigEndian.AppendUint64(buf, index) }

// decodeIndex reads the index at the end of a record's key, after the prefix.
func decodeIndex(rest []byte) (uint64, error) {
	if len(rest) != 8 {
		return 0, fmt.Errorf("the index of a record has %d bytes, not 8", len(rest))
	}
	index := binary.BigEndian.Uint64(rest)
	if index == 0 {
		return 0, fmt.Errorf("a record has the index 0")
	}
	return index, nil
}

// decodeLow reads the value of an entry of kindLow.
func decodeLow(value []byte) (uint64, error) {
	low, n := binary.Uvarint(value)
	if n <= 0 || n != len(value) || low == 0 {
		return 0, fmt.Errorf("the log's lowest index is damaged: %x", value)
	}
	return low, nil
}

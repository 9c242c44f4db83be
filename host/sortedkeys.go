package host

import (
	"bytes"
	"slices"
	"sort"
)

// chunkSize bounds the entries that an insertion moves.
const chunkSize = 256

type entry struct{ key, value []byte }

// sortedKeys is an ordered map from keys to values: a sorted list of sorted chunks. Its zero value
// is empty.
type sortedKeys struct {
	chunks [][]entry // none is empty
}

// locate returns where a key is or would be.
func (s *sortedKeys) locate(key []byte) (chunk, at int, found bool) {
	// The last chunk that begins at or before the key.
	chunk = sort.Search(len(s.chunks), func(i int) bool { return bytes.Compare(s.chunks[i][0].key, key) > 0 }) - 1
	if chunk < 0 {
		return 0, 0, false
	}
	at, found = slices.BinarySearchFunc(s.chunks[chunk], key, func(e entry, key []byte) int {
		return bytes.Compare(e.key, key)
	})
	return chunk, at, found
}

func (s *sortedKeys) get(key []byte) ([]byte, bool) {
	c, i, found := s.locate(key)
	if !found {
		return nil, false
	}
	return s.chunks[c][i].value, true
}

// atOrAfter returns the entry of a key, or else the first one behind it. With after it is the first
// one behind it in any case.
func (s *sortedKeys) atOrAfter(key []byte, after bool) (entry, bool) {
	if len(s.chunks) == 0 {
		return entry{}, false
	}
	c, i, found := s.locate(key)
	if found && after {
		i++
	}
	if i == len(s.chunks[c]) {
		if c, i = c+1, 0; c == len(s.chunks) {
			return entry{}, false
		}
	}
	return s.chunks[c][i], true
}

func (s *sortedKeys) put(key, value []byte) {
	e := entry{key, value}
	if len(s.chunks) == 0 {
		s.chunks = [][]entry{{e}}
		return
	}
	c, i, found := s.locate(key)
	if found {
		s.chunks[c][i] = e
		return
	}
	s.chunks[c] = slices.Insert(s.chunks[c], i, e)
	if n := len(s.chunks[c]); n > chunkSize {
		// Keys that come in order leave full chunks behind.
		cut := n / 2
		if i == n-1 {
			cut = n - 1
		}
		right := slices.Clone(s.chunks[c][cut:])
		clear(s.chunks[c][cut:])
		s.chunks[c] = s.chunks[c][:cut]
		s.chunks = slices.Insert(s.chunks, c+1, right)
	}
}

func (s *sortedKeys) remove(key []byte) {
	c, i, found := s.locate(key)
	if !found {
		return
	}
	s.chunks[c] = slices.Delete(s.chunks[c], i, i+1)
	if len(s.chunks[c]) == 0 {
		s.chunks = slices.Delete(s.chunks, c, c+1)
	}
}

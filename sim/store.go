package sim

import (
	"iter"
	"slices"
	"sort"
)

// pageKeys is the most that a page of a store holds; larger ones are halved.
const pageKeys = 128

// A store is an ordered key space in memory: sorted pages of sorted keys. It is what protocol.Keys
// asks for; the keys change between calls only.
type store struct {
	pages [][]pair // Invariant: none is empty, and their keys ascend.
}

type pair struct {
	key   string
	value []byte
}

// clone returns a copy. Values are never changed in place.
func (s *store) clone() store {
	c := store{pages: make([][]pair, len(s.pages))}
	for i, page := range s.pages {
		c.pages[i] = slices.Clone(page)
	}
	return c
}

// find returns where a key is, or would be.
func (s *store) find(key string) (page, at int, ok bool) {
	page = sort.Search(len(s.pages), func(i int) bool { return s.pages[i][0].key > key }) - 1
	if page < 0 {
		return 0, 0, false
	}
	p := s.pages[page]
	at = sort.Search(len(p), func(i int) bool { return p[i].key >= key })
	return page, at, at < len(p) && p[at].key == key
}

// Get implements protocol.Keys.
func (s *store) Get(key []byte) ([]byte, bool) { return s.get(string(key)) }

func (s *store) get(key string) ([]byte, bool) {
	page, at, ok := s.find(key)
	if !ok {
		return nil, false
	}
	return s.pages[page][at].value, true
}

// Scan implements protocol.Keys.
func (s *store) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		page, at, _ := s.find(string(lo))
		for ; page < len(s.pages); page, at = page+1, 0 {
			for ; at < len(s.pages[page]); at++ {
				p := s.pages[page][at]
				if hi != nil && p.key >= string(hi) || !yield([]byte(p.key), p.value) {
					return
				}
			}
		}
	}
}

// set writes a key, or deletes it if value is nil, and returns what it was, nil if it was not
// there.
func (s *store) set(key string, value []byte) (old []byte) {
	page, at, ok := s.find(key)
	switch {
	case ok && value != nil:
		p := s.pages[page]
		old, p[at].value = p[at].value, value
	case ok:
		old = s.pages[page][at].value
		s.remove(page, at)
	case value != nil:
		s.insert(page, at, pair{key, value})
	}
	return old
}

func (s *store) insert(page, at int, new pair) {
	if len(s.pages) == 0 {
		s.pages = append(s.pages, []pair{new})
		return
	}
	p := append(s.pages[page], pair{})
	copy(p[at+1:], p[at:])
	p[at] = new
	s.pages[page] = p
	if len(p) > pageKeys {
		upper := append(make([]pair, 0, pageKeys+1), p[len(p)/2:]...)
		clear(p[len(p)/2:])
		s.pages[page] = p[:len(p)/2]
		s.pages = append(s.pages, nil)
		copy(s.pages[page+2:], s.pages[page+1:])
		s.pages[page+1] = upper
	}
}

func (s *store) remove(page, at int) {
	p := s.pages[page]
	copy(p[at:], p[at+1:])
	p[len(p)-1] = pair{}
	s.pages[page] = p[:len(p)-1]
	if len(p) == 1 {
		s.pages = append(s.pages[:page], s.pages[page+1:]...)
	}
}

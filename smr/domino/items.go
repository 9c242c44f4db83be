package domino

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A bySlot holds items in the order of their slots, one for each.
type bySlot []item

func (l bySlot) search(s smr.Slot) (int, bool) {
	if n := len(l); n == 0 || l[n-1].Slot < s { // most often
		return n, false
	}
	return slices.BinarySearchFunc(l, s, func(i item, s smr.Slot) int { return cmp.Compare(i.Slot, s) })
}

// add puts an item in, unless the slot has one.
func (l *bySlot) add(i item) {
	if at, found := l.search(i.Slot); !found {
		*l = slices.Insert(*l, at, i)
	}
}

func (l bySlot) get(s smr.Slot) (item, bool) {
	at, found := l.search(s)
	if !found {
		return item{}, false
	}
	return l[at], true
}

// within returns the items above low, up to high.
func (l bySlot) within(low, high smr.Slot) bySlot {
	i, _ := l.search(low + 1)
	j, _ := l.search(high + 1)
	return l[i:max(i, j)]
}

// cut forgets the items up to a slot.
func (l *bySlot) cut(to smr.Slot) {
	n, _ := l.search(to + 1)
	clear((*l)[:n])
	*l = (*l)[n:]
}

// remove forgets the items above low, up to high.
func (l *bySlot) remove(low, high smr.Slot) {
	i, _ := l.search(low + 1)
	j, _ := l.search(high + 1)
	if j > i {
		*l = slices.Delete(*l, i, j)
	}
}

// A stream is a sequence of which the first is not needed any more.
type stream[T interface{ bytes() int }] struct {
	base    uint64   // how many are gone
	through smr.Slot // they are of slots up to it
	tail    []T
	gone    int // elements in front of the tail that its array still has
	size    int // bytes of the tail's commands
}

// add puts some at the end.
func (s *stream[T]) add(more ...T) {
	s.tail = append(s.tail, more...)
	for i := range more {
		s.size += more[i].bytes()
	}
}

func (s *stream[T]) last() uint64 { return s.base + uint64(len(s.tail)) }

// from returns those from a number on.
func (s *stream[T]) from(number uint64) []T {
	return s.tail[min(max(number, s.base+1)-s.base-1, uint64(len(s.tail))):]
}

// drop forgets the first one, which is of slots up to one.
func (s *stream[T]) drop(slot smr.Slot) {
	s.size -= s.tail[0].bytes()
	s.tail = s.tail[1:] // not cleared: messages share it
	if s.gone++; s.gone > len(s.tail) {
		s.tail, s.gone = append([]T(nil), s.tail...), 0 // the array holds the commands of all that was in it
	}
	s.base++
	s.through = max(s.through, slot)
}

// fit returns how many of the first items, at least one, go in one message.
func fit(items []item) int {
	size := 0
	for i := range items {
		if size += items[i].sizeBytes(); size > kit.MessageBytes && i > 0 {
			return i
		}
	}
	return len(items)
}

func sizeOf(items []item) int {
	size := 0
	for i := range items {
		size += items[i].sizeBytes()
	}
	return size
}

// pieces cuts a decision into some that go in one message each.
func (c closeSlots) pieces() []closeSlots {
	var out []closeSlots
	for n := fit(c.Items); n < len(c.Items); n = fit(c.Items) {
		high := c.Items[n].Slot - 1
		out = append(out, closeSlots{c.Track, c.Low, high, c.Items[:n:n]})
		c.Low, c.Items = high, c.Items[n:]
	}
	return append(out, c)
}

// bytes returns how many bytes the commands of a decision have.
func (c closeSlots) bytes() (n int) {
	for i := range c.Items {
		n += c.Items[i].bytes()
	}
	return n
}

// bytes returns how many bytes the commands of an item have.
func (i item) bytes() (n int) {
	for _, e := range i.Entries {
		n += len(e.Command)
	}
	return n
}

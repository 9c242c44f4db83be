package transport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// A pair is a sender and a receiver.
type pair struct {
	from protocol.ID
	to   Addr
}

// A source is what one host has sent to this one, over streams that follow each other. It is used
// by one goroutine at a time.
type source struct {
	serial uint64
	next   uint64           // the number of the message that is expected
	gaps   uint64           // how many times messages were lost
	pairs  map[pair]*uint64 // how many of these each receiver was told of. Whoever is not here has been told of none.

	accept   func(protocol.ID) error // says whose messages must not come over the present stream
	accepted map[protocol.ID]bool    // whose may

	// What the last message was like, since the next one often is the same. sink is nil if its
	// receiver is not there.
	any  bool
	last pair
	sink Sink

	inbound map[Sink][]Inbound // of the batch that is being taken, emptied
}

// maxPairs bounds the senders and receivers that a source knows.
const maxPairs = 1 << 16

func (t *Transport) newSource() *source {
	return &source{serial: t.sources.Add(1), pairs: make(map[pair]*uint64), inbound: make(map[Sink][]Inbound)}
}

// begin makes the source ready for the next stream.
func (s *source) begin(accept func(protocol.ID) error) {
	s.accept, s.accepted, s.any = accept, make(map[protocol.ID]bool), false
}

// expect notes that the next message has a number; if it is not the expected one, messages were
// lost.
func (s *source) expect(t *Transport, number uint64) error {
	if number < s.next {
		return fmt.Errorf("message %d repeats: %d is next", number, s.next)
	}
	if number > s.next {
		s.next = number
		s.lose(t)
	}
	return nil
}

// lose tells all who got something from this source that something may be missing. Others are told
// before they get something.
func (s *source) lose(t *Transport) {
	s.gaps++
	t.gaps.Add(1)
	s.any = false
	order := func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.to.Group, b.to.Group), cmp.Compare(a.to.ID, b.to.ID), cmp.Compare(a.from, b.from))
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.pairs), order) {
		port := t.port(p.to)
		if port == nil {
			delete(s.pairs, p)
			continue
		}
		*s.pairs[p] = s.gaps
		port.sink.Broken(p.from)
	}
}

// take hands the messages of a batch to their receivers. Those before a malformed one are handed
// on.
func (s *source) take(t *Transport, first uint64, messages []byte) error {
	if err := s.expect(t, first); err != nil {
		return err
	}
	defer s.deliver()
	var count uint64
	defer func() { t.received.Add(count) }()
	s.any = false // ports may have been opened and closed
	for len(messages) > 0 {
		from, to, payload, rest, err := unpack(messages)
		if err != nil {
			return err
		}
		messages = rest
		s.next++
		count++
		if err := s.find(t, pair{from, to}); err != nil {
			return err
		}
		if s.sink == nil {
			t.undeliverable.Add(1)
			continue
		}
		s.inbound[s.sink] = append(s.inbound[s.sink], Inbound{from, payload})
	}
	return nil
}

// find makes p the last pair and tells its receiver what it has to know before the next message.
func (s *source) find(t *Transport, p pair) error {
	if s.any && p == s.last {
		return nil
	}
	if !s.accepted[p.from] {
		if err := s.accept(p.from); err != nil {
			return err
		}
		s.accepted[p.from] = true
	}
	s.any, s.last, s.sink = true, p, nil
	port := t.port(p.to)
	if port == nil {
		return nil
	}
	s.sink = port.sink
	known := s.pairs[p]
	first := known == nil
	if first {
		if len(s.pairs) >= maxPairs {
			clear(s.pairs) // all will be told once more, before the next message
		}
		known = new(uint64)
		s.pairs[p] = known
	}
	// What another source had for this receiver may not all have arrived: its host has ended, or is
	// another.
	if *known != s.gaps || first && !t.ownedBy(p, s.serial) {
		*known = s.gaps
		s.sink.Broken(p.from)
	}
	return nil
}

// rest frees the memory that a source only needs while messages arrive.
func (s *source) rest() {
	s.accept, s.accepted, s.sink, s.any = nil, nil, nil, false
	s.inbound = make(map[Sink][]Inbound)
}

// ownedBy makes a source the one from which a receiver gets a sender's messages, and reports
// whether no other one was.
func (t *Transport) ownedBy(p pair, serial uint64) bool {
	t.ownersMu.Lock()
	defer t.ownersMu.Unlock()
	was, ok := t.owners[p]
	if !ok {
		if len(t.owners) >= maxOwners {
			clear(t.owners)
			t.ownersLost = true
		}
		t.owners[p] = serial
		return !t.ownersLost
	}
	t.owners[p] = serial
	return was == serial
}

// deliver hands on what take has sorted.
func (s *source) deliver() {
	for sink, msgs := range s.inbound {
		if len(msgs) > 0 {
			sink.Receive(msgs)
			clear(msgs)
			s.inbound[sink] = msgs[:0]
		} else {
			delete(s.inbound, sink) // idle for a whole batch
		}
	}
}

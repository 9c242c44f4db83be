package kit

import (
	"iter"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// pending is a call of a LeaderClient that is not done.
type pending struct {
	smr.Call
	number uint64 // its Seq, or that of its query; 0 before it was given one
	began  time.Duration
	first  time.Duration // when it was first sent to sentTo
	sentAt time.Duration
	sentTo protocol.ID // 0 if it was not sent, or is to be sent again
	tries  int
	told   bool   // its Done was sent, as its position is fixed; it stays until it is executed
	reason string // why it could not be done the last time
}

// flights are the calls that were sent, by their numbers.
type flights struct {
	first uint64     // the number of calls[0]. Invariant: calls[0] is not nil.
	calls []*pending // nil for one that is done
	count int
}

func newFlights() flights { return flights{first: 1} }

// next returns the number that the next call gets.
func (f *flights) next() uint64 { return f.first + uint64(len(f.calls)) }

func (f *flights) add(c *pending) {
	c.number = f.next()
	f.calls = append(f.calls, c)
	f.count++
}

func (f *flights) get(number uint64) *pending {
	if number < f.first || number >= f.next() {
		return nil
	}
	return f.calls[number-f.first]
}

func (f *flights) remove(number uint64) {
	if f.get(number) == nil {
		return
	}
	f.calls[number-f.first] = nil
	f.count--
	for len(f.calls) > 0 && f.calls[0] == nil {
		f.calls = f.calls[1:]
		f.first++
	}
}

// since goes through the calls from a number on, in order. They may be removed meanwhile.
func (f *flights) since(number uint64) iter.Seq[*pending] {
	return func(yield func(*pending) bool) {
		skip := max(number, f.first) - f.first
		for _, c := range f.calls[min(skip, uint64(len(f.calls))):] {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

package mvcc

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
)

// Reads is what a node remembers that serves reads at timestamps, so that what it has answered
// stays true: no later write gets a timestamp at or below a read of its key. It is in memory only.
// What stands for it after a restart, or at another node that serves in the place of this one, is
// the ceiling: reads are served at or below it alone, it is on record before, and whoever begins to
// serve has all writes above it. No clock has to be right for that, and no lease to end.
//
// On record means: as durable as what is written. A node alone calls Store.RaiseCeiling and serves
// when that is on its disk; a group agrees on the ceiling, as on a write, and its next leader
// begins once it has carried out all that was agreed on before.
type Reads struct {
	ahead   time.Duration
	maxKeys int

	ceiling clock.Stamp // on record
	asked   clock.Stamp // that is to be on record. Invariant: asked >= ceiling
	evicted clock.Stamp // Invariant: a read that is not in newest was not above it
	// newest are the timestamps of the latest reads of keys. Invariant: each is above evicted and
	// not above the ceiling.
	newest map[store.Key]clock.Stamp
}

// NewReads returns the reads of a node that begins to serve, none; ceiling is the one that is on
// record. Ceilings are asked for ahead of time, so that reads of the next while need none, and no
// more than maxKeys keys are remembered: what is forgotten counts as a read of all keys.
func NewReads(ceiling clock.Stamp, ahead time.Duration, maxKeys int) (*Reads, error) {
	if ahead < 0 || maxKeys < 1 {
		return nil, fmt.Errorf("mvcc: reads with ceilings %v ahead and %d keys", ahead, maxKeys)
	}
	return &Reads{ahead: ahead, maxKeys: maxKeys, ceiling: ceiling, asked: ceiling, evicted: ceiling,
		newest: map[store.Key]clock.Stamp{}}, nil
}

// Serve notes that a key is read at a timestamp and reports whether that can be answered. If not, a
// ceiling at or above the timestamp has to be on record first: see Raise.
func (r *Reads) Serve(key store.Key, at clock.Stamp) bool {
	if at > r.ceiling {
		return false
	}
	if at <= r.evicted || at <= r.newest[key] {
		return true
	}
	if _, ok := r.newest[key]; !ok && len(r.newest) >= r.maxKeys {
		if r.evict(); at <= r.evicted {
			return true
		}
	}
	r.newest[key] = at
	return true
}

// evict forgets the older half of the reads: evicted rises to the latest of them.
func (r *Reads) evict() {
	times := slices.Sorted(maps.Values(r.newest))
	r.evicted = times[len(times)/2]
	maps.DeleteFunc(r.newest, func(_ store.Key, at clock.Stamp) bool { return at <= r.evicted })
}

// Raise returns the ceiling that is to be put on record so that reads at a timestamp can be served;
// ok is false if that is not needed, or is under way. Recorded says when it is there; Failed that
// it will not be.
func (r *Reads) Raise(at clock.Stamp) (ceiling clock.Stamp, ok bool) {
	if at <= r.asked {
		return 0, false
	}
	r.asked = at + clock.Stamp(r.ahead)
	return r.asked, true
}

// Recorded takes note that a ceiling is on record.
func (r *Reads) Recorded(ceiling clock.Stamp) {
	r.ceiling = max(r.ceiling, ceiling)
	r.asked = max(r.asked, r.ceiling)
}

// Failed takes note that ceilings that were asked for may not come to be on record.
func (r *Reads) Failed() { r.asked = r.ceiling }

// Ceiling returns the one that is on record.
func (r *Reads) Ceiling() clock.Stamp { return r.ceiling }

// Above returns the timestamp above which a write of a key has to be.
func (r *Reads) Above(key store.Key) clock.Stamp { return max(r.evicted, r.newest[key]) }

// Len returns how many keys are remembered.
func (r *Reads) Len() int { return len(r.newest) }

// Check returns which invariant is broken, or nil.
func (r *Reads) Check() error {
	for key, at := range r.newest { //pure:ok any broken one is an error
		if at <= r.evicted || at > r.ceiling {
			return fmt.Errorf("mvcc: %q was read at %v, evicted up to %v, with the ceiling %v", key, at, r.evicted, r.ceiling)
		}
	}
	if r.asked < r.ceiling || r.evicted > r.ceiling {
		return fmt.Errorf("mvcc: evicted up to %v, the ceiling %v, and %v is asked for", r.evicted, r.ceiling, r.asked)
	}
	return nil
}

package mvcc

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A Store is the versions of a node's values, in a part of its key space. It keeps nothing in
// memory: what was written is what is there, after a restart too. Versions are ordered by their
// Time, which is a timestamp, and then by their Client. No two values of a key have the same one.
type Store struct{ prefix []byte }

// Writer is the key space of a node in one of its calls: a [protocol.Env].
type Writer interface {
	protocol.Keys
	Put(key, value []byte)
	Delete(key []byte)
}

// New returns the store whose keys all begin with a prefix. What else the node has in its key space
// must not begin with it.
func New(prefix []byte) Store { return Store{slices.Clone(prefix)} }

// A HorizonError says that a timestamp is from before the horizon: versions that its snapshot needs
// may have been collected, and nothing can be written there any more.
type HorizonError struct {
	At      clock.Stamp
	Horizon clock.Stamp
}

func (e *HorizonError) Error() string {
	return fmt.Sprintf("mvcc: timestamp %v is from before the horizon, %v", e.At, e.Horizon)
}

// stampOf returns a version's timestamp. One that no clock has is later than all.
func stampOf(v store.Version) clock.Stamp {
	return clock.Stamp(min(v.Time, math.MaxInt64))
}

// last returns the latest version that a snapshot sees.
func last(at clock.Stamp) store.Version {
	return store.Version{Time: uint64(at), Client: math.MaxUint64}
}

// contents are what is on disk of a value; its version is in the key.
type contents struct {
	present bool
	bytes   []byte
}

var contentsLayout = wirefmt.NewLayout("mvcc: a value on disk", func(c *wirefmt.Coder, v *contents) {
	wirefmt.Bool(c, &v.present)
	wirefmt.Bytes(c, &v.bytes)
	if !v.present && len(v.bytes) > 0 {
		c.Failf("a deletion with %d bytes", len(v.bytes))
	}
})

var stampLayout = wirefmt.NewLayout("mvcc: a timestamp on disk", wirefmt.Uint[clock.Stamp])

func (s Store) value(raw, b []byte) (store.Key, store.Value) {
	key, version := s.versionAt(raw)
	c, err := contentsLayout.Decode(b)
	if err != nil {
		panic(fmt.Sprintf("version %v of %q: %v", version, key, err)) // which runners stop at
	}
	return key, store.Value{Version: version, Present: c.present, Bytes: c.bytes}
}

// Get returns what the snapshot of a timestamp has under a key: the newest version at or below it,
// which may be a deletion, or the zero Value. The error is a *HorizonError.
func (s Store) Get(keys protocol.Keys, key store.Key, snapshot clock.Stamp) (store.Value, error) {
	if h := s.Horizon(keys); snapshot < h {
		return store.Value{}, &HorizonError{snapshot, h}
	}
	if snapshot < 0 {
		return store.Value{}, nil
	}
	return s.first(keys, key, last(snapshot)), nil
}

// Newest returns the newest version of a key, which may be a deletion; the zero Value if there is
// none. A deletion that is at or below the horizon may not be there any more.
func (s Store) Newest(keys protocol.Keys, key store.Key) store.Value {
	return s.first(keys, key, store.Version{Time: math.MaxUint64, Client: math.MaxUint64})
}

// first returns the newest version that is not after upTo.
func (s Store) first(keys protocol.Keys, key store.Key, upTo store.Version) store.Value {
	for v := range s.from(keys, key, upTo) {
		return v
	}
	return store.Value{}
}

// Versions goes through the versions of a key that are there, the newest first.
func (s Store) Versions(keys protocol.Keys, key store.Key) iter.Seq[store.Value] {
	return s.from(keys, key, store.Version{Time: math.MaxUint64, Client: math.MaxUint64})
}

// from goes through the versions that are not after upTo, the newest first.
func (s Store) from(keys protocol.Keys, key store.Key, upTo store.Version) iter.Seq[store.Value] {
	begin := s.versionsOf(key)
	return func(yield func(store.Value) bool) {
		for raw, b := range keys.Scan(at(begin, upTo), end(begin)) {
			if _, v := s.value(raw, b); !yield(v) {
				return
			}
		}
	}
}

// Put writes a version of a key, be it the newest one or not. The error is a *HorizonError: nothing
// is written at or below the horizon. The value's bytes are copied.
func (s Store) Put(w Writer, key store.Key, v store.Value) error {
	if h := s.Horizon(w); h > 0 && stampOf(v.Version) <= h {
		return &HorizonError{stampOf(v.Version), h}
	}
	s.put(w, key, v)
	return nil
}

// put is Put wherever the horizon is. What has to be looked at when the horizon passes a version is
// marked: that has something older below it, or is a deletion.
func (s Store) put(w Writer, key store.Key, v store.Value) {
	begin := s.versionsOf(key)
	own := at(begin, v.Version)
	older := false
	for raw := range w.Scan(own, end(begin)) {
		if _, there := s.versionAt(raw); there != v.Version {
			older = true
			break
		}
	}
	if older || !v.Present {
		w.Put(s.mark(v.Version, key), nil)
	}
	var newer []byte // the one just above
	for raw := range w.Scan(begin, own) {
		newer = raw
	}
	if newer != nil {
		_, above := s.versionAt(newer)
		w.Put(s.mark(above, key), nil)
	}
	w.Put(own, contentsLayout.Encode(contents{v.Present, v.Bytes}))
}

// Horizon returns the earliest timestamp of which a snapshot can be read: 0 until it is raised.
func (s Store) Horizon(keys protocol.Keys) clock.Stamp { return s.stamp(keys, horizonPart) }

// RaiseHorizon gives up the snapshots before a timestamp, and all writes at or before it. Its owner
// sees to it that no transaction gets such a timestamp any more. A horizon never falls.
func (s Store) RaiseHorizon(w Writer, to clock.Stamp) { s.raise(w, horizonPart, to) }

// Ceiling returns the timestamp up to which reads may have been served: see Reads. It is 0 until it
// is raised.
func (s Store) Ceiling(keys protocol.Keys) clock.Stamp { return s.stamp(keys, ceilingPart) }

// RaiseCeiling puts a ceiling on record. A ceiling never falls.
func (s Store) RaiseCeiling(w Writer, to clock.Stamp) { s.raise(w, ceilingPart, to) }

// Closed returns the timestamp at or below which nothing will be written any more: whoever has the
// store may serve snapshots up to it, without asking anybody. It is 0 until it is raised.
func (s Store) Closed(keys protocol.Keys) clock.Stamp { return s.stamp(keys, closedPart) }

// RaiseClosed puts a closed timestamp on record. Its owner sees to it that no transaction gets a
// timestamp at or below it any more. It never falls.
func (s Store) RaiseClosed(w Writer, to clock.Stamp) { s.raise(w, closedPart, to) }

func (s Store) stamp(keys protocol.Keys, part byte) clock.Stamp {
	b, ok := keys.Get(s.key(part, 0))
	if !ok {
		return 0
	}
	t, err := stampLayout.Decode(b)
	if err != nil || t < 0 {
		panic(fmt.Sprintf("mvcc: the timestamp %v on disk: %v", t, err)) // which runners stop at
	}
	return t
}

func (s Store) raise(w Writer, part byte, to clock.Stamp) {
	if to > s.stamp(w, part) {
		w.Put(s.key(part, 0), stampLayout.Encode(to))
	}
}

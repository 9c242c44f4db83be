package mvcc

import (
	"encoding/binary"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// HasGarbage reports whether Collect would find something to look at if the horizon were raised.
func (s Store) HasGarbage(keys protocol.Keys, horizon clock.Stamp) bool {
	first, behind := s.key(markPart, 0), s.key(markPart, 8)
	for range keys.Scan(first, binary.BigEndian.AppendUint64(behind, uint64(max(horizon, 0))+1)) {
		return true
	}
	return false
}

// Collect removes what no snapshot at or above the horizon sees: of each key all versions before
// the newest one at or below the horizon, and that one too if it is a deletion. It looks at marks
// only, so it costs as much as there is to collect, however many keys there are. It removes about
// limit versions and marks at most, and reports whether more are left.
func (s Store) Collect(w Writer, limit int) (removed int, more bool) {
	return s.collectAll(w, limit, true)
}

// CollectOverwritten is Collect for stores whose deleted keys are to keep the version of the
// deletion: the newest version of a key stays as it is whenever that is done.
func (s Store) CollectOverwritten(w Writer, limit int) (removed int, more bool) {
	return s.collectAll(w, limit, false)
}

func (s Store) collectAll(w Writer, limit int, deletions bool) (removed int, more bool) {
	h := s.Horizon(w)
	if h == 0 {
		return 0, false
	}
	first, behind := s.key(markPart, 0), s.key(markPart, 8)
	behind = binary.BigEndian.AppendUint64(behind, uint64(h)+1)
	for raw := range w.Scan(first, behind) {
		if removed >= limit {
			return removed, true
		}
		n, whole := s.collect(w, s.markedAt(raw), last(h), limit-removed, deletions)
		if removed += n; !whole {
			return removed, true
		}
		w.Delete(append([]byte(nil), raw...))
		removed++
	}
	return removed, false
}

// collect removes what is needless of a key's versions that are not after upTo, up to a number of
// them, and reports whether it removed all.
func (s Store) collect(
	w Writer, key store.Key, upTo store.Version, limit int, deletions bool,
) (removed int, whole bool) {
	begin := s.versionsOf(key)
	var deletion []byte
	first := true
	for raw, b := range w.Scan(at(begin, upTo), end(begin)) {
		if first {
			first = false
			if _, v := s.value(raw, b); !v.Present && deletions {
				deletion = append([]byte(nil), raw...)
			}
			continue
		}
		if removed >= limit {
			return removed, false
		}
		w.Delete(append([]byte(nil), raw...))
		removed++
	}
	// A deletion goes last: what is below it would be seen again.
	if deletion != nil {
		w.Delete(deletion)
		removed++
	}
	return removed, true
}

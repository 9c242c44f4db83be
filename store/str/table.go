package str

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
)

// table is what a coordinator knows of keys: its own transactions' versions that are not final,
// which its other transactions read [STR §6.2], and what stands in for the copies of shards that
// its site does not have, the paper's cache partition.
type table struct {
	keys map[store.Key]*entry
	// forgotten is a snapshot above which nobody has read a key that has no entry any more.
	forgotten clock.Stamp
}

// entry is what is known of a key.
type entry struct {
	// local are the versions, the earliest first: none of them is final.
	local []*txn
	// certifying is the transaction that is being certified to write the key; nil: none is.
	certifying *txn
	queue      []*txn // that wait for that to end, or for local ones to be final
	// read is the latest snapshot in which the key was read here, of those that a server of the site
	// may not know: of a key without a copy there, or of a version that was not final then.
	read clock.Stamp
	// final is when a transaction of the coordinator's has written the key last, as of its commit: a
	// site without a copy has nobody else who knows (S3).
	final clock.Stamp
}

// maxEntries is how many keys a table has at most that nobody writes at present.
const maxEntries = 100_000

func newTable() table { return table{keys: map[store.Key]*entry{}} }

// of returns the entry of a key.
func (t *table) of(key store.Key) *entry {
	e := t.keys[key]
	if e == nil {
		e = &entry{read: t.forgotten}
		t.keys[key] = e
	}
	return e
}

// seen returns the newest version of a key that a snapshot shows and that is not final; nil if
// there is none.
func (t *table) seen(key store.Key, at clock.Stamp) *txn {
	e := t.keys[key]
	if e == nil {
		return nil
	}
	for _, x := range slices.Backward(e.local) {
		if x.local <= at {
			return x
		}
	}
	return nil
}

// lacks reports whether a snapshot shows a version of a key that is not final, and what a server
// has found is earlier. That version is hidden by one on top of it that is read no longer, so the
// server was asked; but another key may show its transaction.
func (t *table) lacks(key store.Key, at clock.Stamp, found store.Version) bool {
	e := t.keys[key]
	return e != nil && slices.ContainsFunc(e.local, func(x *txn) bool {
		return x.shows(at) && found.Time < uint64(x.local)
	})
}

// later returns the transactions that write a key and that a snapshot does not show, whatever
// becomes of them.
func (t *table) later(key store.Key, at clock.Stamp) (out []store.TxnID) {
	if e := t.keys[key]; e != nil {
		for _, x := range e.local {
			if x.local > at {
				out = append(out, x.id)
			}
		}
	}
	return out
}

// readAt notes that a key without a copy at the site was read.
func (t *table) readAt(key store.Key, at clock.Stamp) {
	e := t.of(key)
	e.read = max(e.read, at)
}

// above returns what the commit of a transaction that writes a key has to be above: the snapshots
// in which the key was read here without that write.
func (t *table) above(key store.Key) clock.Stamp {
	above := t.forgotten
	if e := t.keys[key]; e != nil {
		above = max(above, e.read)
		for _, x := range e.local {
			above = max(above, x.read)
		}
	}
	return above
}

// tidy forgets the older half of what is known of keys that nobody writes, if there are too many.
// What is forgotten counts as read in the latest snapshot that is forgotten.
func (t *table) tidy() {
	if len(t.keys) <= maxEntries {
		return
	}
	var times []clock.Stamp
	idle := func(e *entry) bool {
		return len(e.local)+len(e.queue) == 0 && e.certifying == nil
	}
	for _, e := range t.keys { //pure:ok they are sorted
		if idle(e) {
			times = append(times, max(e.read, e.final))
		}
	}
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	t.forgotten = max(t.forgotten, times[len(times)/2])
	maps.DeleteFunc(t.keys, func(_ store.Key, e *entry) bool { return idle(e) && max(e.read, e.final) <= t.forgotten })
}

// wrote notes that a transaction is final. The servers hear from its outcome in which snapshots it
// was read, and maybe later than of who is certified next.
func (t *table) wrote(x *txn) {
	for _, w := range x.writes {
		e := t.of(w.Key)
		e.read, e.final = max(e.read, x.read), max(e.final, x.final)
	}
}

// written returns a timestamp at or below which a snapshot may lack what a transaction of the
// coordinator's has written under a key.
func (t *table) written(key store.Key) clock.Stamp {
	if e := t.keys[key]; e != nil {
		return max(e.final, t.forgotten)
	}
	return t.forgotten
}

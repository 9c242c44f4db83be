package tree

import (
	"encoding/binary"
	"iter"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// reapKeys is how many keys a Reap removes at most.
const reapKeys = 256

// Orphans goes through the objects, from one on, that a Reap has something to remove of: those
// without a name, and files with blocks that are cut off. An object may come twice.
func Orphans(from keyspace.Reader, after specfs.ID) iter.Seq[specfs.ID] {
	return func(yield func(specfs.ID) bool) {
		for _, kind := range []byte{recordOrphan, recordGarbage} {
			for k := range from.Scan(key(kind, after), []byte{kind + 1}) {
				if !yield(specfs.ID(binary.BigEndian.Uint64(k[1:]))) {
					return
				}
			}
		}
	}
}

// IsOrphan reports whether an object is there, but has no name.
func IsOrphan(in keyspace.Reader, id specfs.ID) bool {
	_, ok := in.Get(key(recordOrphan, id))
	return ok
}

func (t *tree) reap(op specfs.Reap) specfs.Result {
	left := reapKeys
	for k := range t.space.Scan(key(recordGarbage, op.ID), end(key(recordGarbage, op.ID))) {
		content := binary.BigEndian.Uint64(k[9:])
		if !t.remove(key(recordBlock, op.ID, content), &left) {
			return specfs.Result{More: true}
		}
		t.space.Delete(k)
	}
	if !IsOrphan(t.space, op.ID) {
		return specfs.Result{}
	}
	for _, kind := range []byte{recordBlock, recordXattr} {
		if !t.remove(key(kind, op.ID), &left) {
			return specfs.Result{More: true}
		}
	}
	o := t.object(op.ID)
	for _, a := range []specfs.Aspect{specfs.Meta, specfs.Stat, specfs.Data, specfs.Xattrs} {
		t.changedPart(specfs.Part{ID: o.ID, Aspect: a}, *o.version(a))
	}
	t.space.Delete(key(recordObject, op.ID))
	t.space.Delete(key(recordOrphan, op.ID))
	return specfs.Result{}
}

// remove removes keys that begin with a prefix, as many as are left, and reports whether these were
// all.
func (t *tree) remove(prefix []byte, left *int) bool {
	var keys [][]byte
	for k := range t.space.Scan(prefix, end(prefix)) {
		if len(keys) == *left {
			break
		}
		keys = append(keys, append([]byte(nil), k...))
	}
	all := len(keys) < *left
	*left -= len(keys)
	for _, k := range keys {
		t.space.Delete(k)
	}
	return all
}

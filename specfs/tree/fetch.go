package tree

import (
	"bytes"
	"encoding/binary"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// Object returns the object that a record belongs to, false if there is no such record that a
// client may know.
func Object(key []byte) (specfs.ID, bool) {
	if len(key) < 9 || bytes.IndexByte([]byte{recordObject, recordName, recordBlock, recordXattr}, key[0]) < 0 {
		return 0, false
	}
	return specfs.ID(binary.BigEndian.Uint64(key[1:])), true
}

// MayFetch tells whether somebody may know the records of a Want: EINVAL if there are none.
func MayFetch(from keyspace.Reader, cred specfs.Cred, w specfs.Want) specfs.Errno {
	id, ok := Object(w.Lo)
	if !ok || bytes.Compare(w.Lo, w.Hi) >= 0 || bytes.Compare(w.Hi, end(w.Lo[:9])) > 0 {
		return specfs.EINVAL
	}
	kind := w.Lo[0]
	b, ok := from.Get(key(recordObject, id))
	if !ok || kind == recordObject {
		return specfs.OK // what is not there is no secret, and attributes are none
	}
	o := mustDecode(objectLayout.Decode(b))
	t := &tree{Call: Call{Cred: cred}}
	want := specfs.Read
	if kind == recordName && bytes.Equal(w.Hi, append(bytes.Clone(w.Lo), 0)) {
		want = specfs.Execute
	}
	if !t.mayUse(&o, want, kind != recordName) {
		return specfs.EACCES
	}
	return specfs.OK
}

// Records returns the ranges of keys that have to be forgotten when a part has changed. A listing
// has changed only together with names, so what else is known of a directory's names stays.
func Records(p specfs.Part) []specfs.Want {
	whole := func(kind byte) specfs.Want {
		k := key(kind, p.ID)
		return specfs.Want{Lo: k, Hi: end(k)}
	}
	switch p.Aspect {
	case specfs.Name:
		k := namedKey(recordName, p.ID, p.Name)
		return []specfs.Want{{Lo: k, Hi: append(bytes.Clone(k), 0)}}
	case specfs.Data:
		return []specfs.Want{whole(recordObject), whole(recordBlock)}
	case specfs.Xattrs:
		return []specfs.Want{whole(recordObject), whole(recordXattr)}
	case specfs.Everything:
		return []specfs.Want{whole(recordObject), whole(recordName), whole(recordBlock), whole(recordXattr)}
	}
	return []specfs.Want{whole(recordObject)}
}

// Made returns the ranges of keys of an object that a client is about to make: there are no records
// but those that it makes itself.
func Made(id specfs.ID) []specfs.Want { return Records(specfs.Part{ID: id}) }

// Restamp returns a record with other versions.
func Restamp(key, value []byte, version func(specfs.Version) specfs.Version) []byte {
	switch key[0] {
	case recordObject:
		o := mustDecode(objectLayout.Decode(value))
		for _, a := range aspects() {
			*o.version(a) = version(*o.version(a))
		}
		return objectLayout.Encode(o)
	case recordName:
		e := mustDecode(entryLayout.Decode(value))
		e.Version = version(e.Version)
		return entryLayout.Encode(e)
	}
	return value
}

// KindOf returns what an object is, 0 if it is not there.
func KindOf(from keyspace.Reader, id specfs.ID) specfs.Kind {
	b, ok := from.Get(key(recordObject, id))
	if !ok {
		return 0
	}
	return mustDecode(objectLayout.Decode(b)).Kind
}

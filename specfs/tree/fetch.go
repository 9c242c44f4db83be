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

// IsRecord reports whether a key and its value are what a client may know and this package can use.
func IsRecord(key, value []byte) bool {
	if _, ok := Object(key); !ok {
		return false
	}
	switch name := string(key[9:]); key[0] {
	case recordObject:
		o, err := objectLayout.Decode(value)
		return err == nil && name == "" && o.Kind != 0 && o.Size <= specfs.MaxFileBytes
	case recordName:
		_, err := entryLayout.Decode(value)
		return err == nil && specfs.ValidName(name) == specfs.OK
	case recordBlock:
		return len(name) == 16 && len(value) <= blockBytes
	}
	return true
}

// MayFetch tells whether somebody may know the records of a Want: EINVAL if there are none.
func MayFetch(from keyspace.Reader, cred specfs.Cred, w specfs.Want) specfs.Errno {
	id, ok := Object(w.Lo)
	if !ok || bytes.Compare(w.Lo, w.Hi) >= 0 || bytes.Compare(w.Hi, end(w.Lo[:9])) > 0 {
		return specfs.EINVAL
	}
	want := specfs.Read
	switch kind := w.Lo[0]; {
	case kind == recordObject:
		want = 0
	case kind == recordName && bytes.Equal(w.Hi, append(bytes.Clone(w.Lo), 0)):
		want = specfs.Execute
	}
	if !mayKnow(from, cred, id, want) {
		return specfs.EACCES
	}
	return specfs.OK
}

// MayKnow reports whether somebody may know which version a part has: who may fetch it may.
func MayKnow(from keyspace.Reader, cred specfs.Cred, p specfs.Part) bool {
	want := specfs.Read
	switch p.Aspect {
	case specfs.Meta, specfs.Stat, specfs.Place:
		want = 0
	case specfs.Name:
		want = specfs.Execute
	}
	return mayKnow(from, cred, p.ID, want)
}

// mayKnow reports whether somebody may know something of an object, for which he needs a right to
// it. An owner may, as he can give himself the right, and the attributes are no secret, nor is what
// is not there.
func mayKnow(from keyspace.Reader, cred specfs.Cred, id specfs.ID, want specfs.Access) bool {
	b, ok := from.Get(key(recordObject, id))
	if !ok || want == 0 {
		return true
	}
	o := mustDecode(objectLayout.Decode(b))
	t := &tree{Call: Call{Cred: cred}}
	return t.mayUse(&o, want, true)
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

package tree

import (
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// The keys of a file system begin with one of these.
const (
	recordObject  = 'o' // ID: an object
	recordName    = 'n' // ID of the directory, name: an entry
	recordBlock   = 'b' // ID, content, number: a block of data; one that is not there is zeros
	recordXattr   = 'x' // ID, name: a value
	recordOrphan  = 'u' // ID: nothing; the object has no name any more
	recordGarbage = 'g' // ID, content: nothing; its blocks belong to nobody
)

// blockBytes is how long a block is at most. What a shorter one lacks is zeros.
const blockBytes = 16 << 10

// An object as it is on record.
type object struct {
	ID specfs.ID
	specfs.Attr
	Target string
	// Parent is the directory that a directory is in. The root's is the root.
	Parent specfs.ID
	// Content numbers what the file's blocks belong to. A file that is truncated to nothing gets
	// another one, and Reap removes the old blocks.
	Content uint64

	Meta, Stat, Data, Names, Place, Xattrs specfs.Version
}

// aspects returns those of an object as a whole.
func aspects() []specfs.Aspect {
	return []specfs.Aspect{specfs.Meta, specfs.Stat, specfs.Data, specfs.Names, specfs.Place, specfs.Xattrs}
}

// version returns that of an aspect other than Name.
func (o *object) version(a specfs.Aspect) *specfs.Version {
	switch a {
	case specfs.Meta:
		return &o.Meta
	case specfs.Stat:
		return &o.Stat
	case specfs.Data:
		return &o.Data
	case specfs.Names:
		return &o.Names
	case specfs.Place:
		return &o.Place
	case specfs.Xattrs:
		return &o.Xattrs
	}
	panic(fmt.Sprintf("tree: objects have no version of %v", a))
}

var objectLayout = wirefmt.NewLayout("tree: object", func(c *wirefmt.Coder, o *object) {
	wirefmt.Version(c, 1)
	specfs.AttrFields(c, &o.Attr)
	wirefmt.String(c, &o.Target)
	wirefmt.Uint(c, &o.Parent)
	wirefmt.Uint(c, &o.Content)
	for _, a := range aspects() {
		wirefmt.Uint(c, o.version(a))
	}
})

// An entry is what a name in a directory stands for.
type entry struct {
	ID      specfs.ID
	Kind    specfs.Kind
	Version specfs.Version
}

var entryLayout = wirefmt.NewLayout("tree: entry", func(c *wirefmt.Coder, e *entry) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &e.ID)
	wirefmt.Enum(c, &e.Kind, specfs.File, specfs.Socket, "kind of object")
	wirefmt.Uint(c, &e.Version)
})

// mustDecode returns what a record says. Only this package writes any; who gives the space checks
// what is on a disk.
func mustDecode[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// key returns the key of a record.
func key(kind byte, id specfs.ID, numbers ...uint64) []byte {
	b := append(make([]byte, 0, 9+8*len(numbers)), kind)
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func namedKey(kind byte, id specfs.ID, name string) []byte { return append(key(kind, id), name...) }

// end returns the first key beyond those that begin with one.
func end(prefix []byte) []byte {
	b := append([]byte(nil), prefix...)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil
}

// object returns the object of an ID, nil if there is none.
func (t *tree) object(id specfs.ID) *object {
	b, ok := t.space.Get(key(recordObject, id))
	if !ok {
		return nil
	}
	o := mustDecode(objectLayout.Decode(b))
	o.ID = id
	return &o
}

// behind returns the object behind a name. A client may know a name without its object: it throws
// away what came of the operation then, as it knows what it has missed.
func (t *tree) behind(e entry) *object {
	if o := t.object(e.ID); o != nil {
		return o
	}
	return &object{ID: e.ID, Attr: specfs.Attr{Kind: e.Kind, Links: 1}}
}

func (t *tree) put(o *object) { t.space.Put(key(recordObject, o.ID), objectLayout.Encode(*o)) }

// entry returns what a name stands for, which the result depends on; the zero entry is nothing.
func (t *tree) entry(dir specfs.ID, name string) entry {
	e := entryOf(t.space, dir, name)
	t.sawPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, e.Version)
	return e
}

func entryOf(from keyspace.Reader, dir specfs.ID, name string) entry {
	b, ok := from.Get(namedKey(recordName, dir, name))
	if !ok {
		return entry{}
	}
	return mustDecode(entryLayout.Decode(b))
}

// setEntry makes a name stand for something, or for nothing.
func (t *tree) setEntry(dir specfs.ID, name string, before specfs.Version, e entry) {
	t.changedPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, before)
	at := namedKey(recordName, dir, name)
	if e.ID == 0 {
		t.space.Delete(at)
		return
	}
	e.Version = t.Serial
	t.space.Put(at, entryLayout.Encode(e))
}

package wirefmt

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/foresay/foresay/protocol"
)

// A Kind is one type of message of a Format, or of record.
type Kind[M any] struct {
	tag     byte
	name    string
	of      reflect.Type
	encode  func(Writer, M) Writer
	decode  func(Reader) (M, error)
	take    func(*Coder, *M) // the fields, with the Coder of a message that this one is a part of
	fits    func(M) bool     // nil unless it is an earlier layout
	earlier []*Kind[M]       // the earlier layouts, the first that fits counts
}

// coding is a message that is being encoded or decoded. It is what a kind's function gets, which
// keeps none of it.
type coding[T any] struct {
	c   Coder
	w   Writer
	r   Reader
	msg T
}

// take takes the fields of a message with a Coder, the coding's own or another one's.
func take[M, T any](x *coding[T], c *Coder, m *M, fields func(*Coder, *T)) {
	if c.r == nil {
		x.msg = any(*m).(T)
		fields(c, &x.msg)
		return
	}
	fields(c, &x.msg)
	*m = any(x.msg).(M)
}

// NewKind declares that messages of type T, each an M, have the tag, and their fields. A tag in use
// is never given to another type.
func NewKind[M, T any](tag byte, fields func(*Coder, *T)) Kind[M] {
	of := reflect.TypeFor[T]()
	pool := sync.Pool{New: func() any { return new(coding[T]) }}
	return Kind[M]{
		tag: tag, name: of.String(), of: of,
		encode: func(w Writer, m M) Writer {
			x := pool.Get().(*coding[T])
			x.c.w, x.w = &x.w, w
			take(x, &x.c, &m, fields)
			w = x.w
			*x = coding[T]{}
			pool.Put(x)
			return w
		},
		decode: func(r Reader) (m M, err error) {
			x := pool.Get().(*coding[T])
			x.c.r, x.r = &x.r, r
			take(x, &x.c, &m, fields)
			err = x.r.Close()
			*x = coding[T]{}
			pool.Put(x)
			return m, err
		},
		take: func(c *Coder, m *M) {
			x := pool.Get().(*coding[T])
			take(x, c, m, fields)
			var none T
			x.msg = none
			pool.Put(x)
		},
	}
}

// NewEarlierKind declares under which tag, and how, earlier versions of the program have messages
// of type T, which have got further fields since. They are read under both tags, and those that
// fit, since the further fields are not set, are always written in this way, so that programs of
// both versions understand each other but for what only the later one knows. A type may have
// several: the first one counts that fits.
func NewEarlierKind[M, T any](tag byte, fits func(T) bool, fields func(*Coder, *T)) Kind[M] {
	k := NewKind[M](tag, fields)
	k.fits = func(m M) bool { return fits(any(m).(T)) }
	return k
}

// A Format is the codec of one protocol: a [protocol.Codec] of messages M, an interface. A message
// is the version, the tag of its kind, and what the kind's encoder writes.
type Format[M any] struct {
	protocol string
	version  byte
	tags     [256]*Kind[M]
	types    map[reflect.Type]*Kind[M]
}

// NewFormat returns the format of a protocol. It panics if two kinds share a tag or a type.
func NewFormat[M any](protocol string, version byte, kinds ...Kind[M]) *Format[M] {
	f := &Format[M]{protocol: protocol, version: version, types: map[reflect.Type]*Kind[M]{}}
	earlier := map[reflect.Type][]*Kind[M]{}
	for i := range kinds {
		k := &kinds[i]
		if f.tags[k.tag] != nil || k.fits == nil && f.types[k.of] != nil {
			panic(fmt.Sprintf("wirefmt: %s: the kind %s with tag %d is declared twice", protocol, k.name, k.tag))
		}
		if f.tags[k.tag] = k; k.fits != nil {
			earlier[k.of] = append(earlier[k.of], k)
		} else {
			f.types[k.of] = k
		}
	}
	for of, k := range f.types {
		k.earlier = earlier[of]
	}
	return f
}

// VersionError says that bytes are in a version of the format that this program does not know.
type VersionError struct {
	Protocol string
	Got      byte
	Want     byte
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: message of version %d, this program knows version %d", e.Protocol, e.Got, e.Want)
}

// Append adds the bytes of a message to buf.
func (f *Format[M]) Append(buf []byte, msg M) ([]byte, error) {
	buf, _, err := f.append(buf, nil, msg, false)
	return buf, err
}

// AppendShared is part of [protocol.SharingCodec].
func (f *Format[M]) AppendShared(buf []byte, refs []protocol.Ref, msg M) ([]byte, []protocol.Ref, error) {
	return f.append(buf, refs, msg, true)
}

func (f *Format[M]) append(buf []byte, refs []protocol.Ref, msg M, share bool) ([]byte, []protocol.Ref, error) {
	k := f.kindOf(msg)
	if k == nil {
		return buf, refs, fmt.Errorf("%s: %T is no message of the protocol", f.protocol, msg)
	}
	w := k.encode(Writer{Buf: append(buf, f.version, k.tag), refs: refs, share: share}, msg)
	return w.Buf, w.refs, nil
}

// kindOf returns as what a message is written, nil if it is none of the protocol's.
func (f *Format[M]) kindOf(msg M) *Kind[M] {
	k := f.types[reflect.TypeOf(msg)]
	if k == nil {
		return nil
	}
	for _, e := range k.earlier {
		if e.fits(msg) {
			return e
		}
	}
	return k
}

// Inner takes a message inside of another one. The other one's tag is outer: what bytes say is
// never inside of itself. A message that is none of the protocol's panics when it is written.
func (f *Format[M]) Inner(c *Coder, outer byte, msg *M) {
	if c.r == nil {
		k := f.kindOf(*msg)
		if k == nil || k.tag == outer {
			panic(fmt.Sprintf("%s: a %T cannot be inside of a message", f.protocol, *msg))
		}
		c.w.Buf = append(c.w.Buf, k.tag)
		k.take(c, msg)
		return
	}
	tag := c.r.Byte()
	k := f.tags[tag]
	if k == nil || tag == outer {
		c.r.Failf("message of unknown kind %d inside", tag)
		return
	}
	if k.take(c, msg); c.r.err == nil {
		c.r.err = f.late(k, *msg)
	}
	if c.r.err != nil {
		c.r.err, c.r.rest = fmt.Errorf("%s %w", k.name, c.r.err), nil
	}
}

// late reports whether a message came as a later kind although it is written as an earlier one.
func (f *Format[M]) late(k *Kind[M], m M) error {
	if e := f.kindOf(m); e != k {
		return fmt.Errorf("has tag %d, want %d, as it has none of the later fields", k.tag, e.tag)
	}
	return nil
}

// Decode returns the message whose bytes are all of b. The error is a *VersionError if the version
// is another.
func (f *Format[M]) Decode(b []byte) (M, error) {
	var none M
	if len(b) < 2 {
		return none, fmt.Errorf("%s: message of %d bytes has no version and kind", f.protocol, len(b))
	}
	if b[0] != f.version {
		return none, &VersionError{f.protocol, b[0], f.version}
	}
	k := f.tags[b[1]]
	if k == nil {
		return none, fmt.Errorf("%s: message of unknown kind %d", f.protocol, b[1])
	}
	m, err := k.decode(Reader{rest: b[2:], size: len(b) - 2})
	if err == nil {
		err = f.late(k, m)
	}
	if err != nil {
		return none, fmt.Errorf("%s: %s %w", f.protocol, k.name, err)
	}
	return m, nil
}

// Kinds returns the names of the kinds by tag.
func (f *Format[M]) Kinds() map[byte]string {
	names := map[byte]string{}
	for tag, k := range f.tags {
		if k != nil {
			names[byte(tag)] = k.name
		}
	}
	return names
}

package wirefmt

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/foresay/foresay/protocol"
)

// A Kind is one type of message of a Format, or of record.
type Kind[M any] struct {
	tag    byte
	name   string
	of     reflect.Type
	encode func(*Writer, M)
	decode func(*Reader) M
	fits   func(M) bool // nil unless it is an earlier layout
}

// NewKind declares that messages of type T, each an M, have the tag. A tag in use is never given to another type.
func NewKind[M, T any](tag byte, encode func(*Writer, T), decode func(*Reader) T) Kind[M] {
	of := reflect.TypeFor[T]()
	return Kind[M]{
		tag: tag, name: of.String(), of: of,
		encode: func(w *Writer, m M) { encode(w, any(m).(T)) },
		decode: func(r *Reader) M { return any(decode(r)).(M) },
	}
}

// NewEarlierKind declares under which tag, and how, earlier versions of the program have messages of type T, which have got further fields since. They are read under both tags, and those that fit,
// since the further fields are not set, are still written in this way, so that programs of both versions understand each other but for what only the later one knows.
func NewEarlierKind[M, T any](tag byte, fits func(T) bool, encode func(*Writer, T), decode func(*Reader) T) Kind[M] {
	k := NewKind[M](tag, encode, decode)
	k.fits = func(m M) bool { return fits(any(m).(T)) }
	return k
}

// A Format is the codec of one protocol: a [protocol.Codec] of messages M, an interface. A message is the version, the tag of its
// kind, and what the kind's encoder writes.
type Format[M any] struct {
	protocol string
	version  byte
	tags     [256]*Kind[M]
	types    map[reflect.Type]*Kind[M]
	earlier  map[reflect.Type]*Kind[M]
	// Of no message at present. A kind's functions keep none.
	writers, readers sync.Pool
}

// NewFormat returns the format of a protocol. It panics if two kinds share a tag or a type.
func NewFormat[M any](protocol string, version byte, kinds ...Kind[M]) *Format[M] {
	f := &Format[M]{protocol: protocol, version: version, types: map[reflect.Type]*Kind[M]{}, earlier: map[reflect.Type]*Kind[M]{}}
	for i := range kinds {
		k := &kinds[i]
		types := f.types
		if k.fits != nil {
			types = f.earlier
		}
		if f.tags[k.tag] != nil || types[k.of] != nil {
			panic(fmt.Sprintf("wirefmt: %s: the kind %s with tag %d is declared twice", protocol, k.name, k.tag))
		}
		f.tags[k.tag], types[k.of] = k, k
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
	k := f.types[reflect.TypeOf(msg)]
	if k == nil {
		return buf, refs, fmt.Errorf("%s: %T is no message of the protocol", f.protocol, msg)
	}
	if e := f.earlier[k.of]; e != nil && e.fits(msg) {
		k = e
	}
	w, _ := f.writers.Get().(*Writer)
	if w == nil {
		w = new(Writer)
	}
	*w = Writer{Buf: append(buf, f.version, k.tag), refs: refs, share: share}
	k.encode(w, msg)
	buf, refs = w.Buf, w.refs
	*w = Writer{}
	f.writers.Put(w)
	return buf, refs, nil
}

// Decode returns the message whose bytes are all of b. The error is a *VersionError if the version is another.
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
	r, _ := f.readers.Get().(*Reader)
	if r == nil {
		r = new(Reader)
	}
	*r = Reader{rest: b[2:], size: len(b) - 2}
	m := k.decode(r)
	err := r.Close()
	*r = Reader{}
	f.readers.Put(r)
	if err != nil {
		return none, fmt.Errorf("%s: %s %w", f.protocol, k.name, err)
	}
	return m, nil
}

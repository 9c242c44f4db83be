package keyspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Want is what a [Fetch] asks for: the part of a state that has the keys whose sums begin with
// the same half bytes. What answers it is a page. Its bytes go into a message as they are; there
// are at most MaxWantBytes.
type Want string

// MaxWantBytes is how long a Want is at most.
const MaxWantBytes = 1 + sha256.Size

func wantOf(p path) Want { return Want(p.key()) }

// path returns where what is wanted is in the tree. Another replica may have sent anything.
func (w Want) path() (path, error) {
	if len(w) == 0 || w[0] > maxDepth || len(w) != 1+(int(w[0])+1)/2 {
		return path{}, fmt.Errorf("keyspace: a want of %d bytes", len(w))
	}
	p := path{depth: w[0]}
	copy(p.hash[:], w[1:])
	if p != pathTo(p.hash, p.depth) {
		return path{}, errors.New("keyspace: a want with bits behind its end")
	}
	return p, nil
}

// String returns the half bytes with which the sums of the keys begin.
func (w Want) String() string {
	p, err := w.path()
	if err != nil {
		return err.Error()
	}
	return p.String()
}

// A page is one of three: a node, as in the tree; a bucket, in which a key has its value, if that
// is not too large, or else the sums of both; and a key with its value, where a bucket had its
// sums. The first byte says which.
const (
	tagEntry = 3

	itemFull = 1
	itemSums = 2
)

// Page answers a want from the state as it was. It has at most maxBytes, if these are not too few
// for a node or the sums of a bucket, or for one key with its value. It returns an error if there
// is nothing to say: the want is not one of who fetches this state, or the disk has gone bad.
func (m Moment) Page(w Want, maxBytes int) ([]byte, error) {
	p, err := w.path()
	if err != nil {
		return nil, err
	}
	t, err := find(m.load, m.of.root, p)
	switch {
	case err != nil:
		return nil, err
	case p.depth == maxDepth:
		return m.entryPage(t, p.hash)
	case t.node:
		return t.content(), nil
	}
	return m.bucketPage(t, maxBytes)
}

func (m Moment) entryPage(t *subtree, hash Digest) ([]byte, error) {
	e, ok := t.find(hash)
	if !ok {
		return nil, fmt.Errorf("keyspace: there is no key with the sum %v", hash)
	}
	value, ok := m.Get(e.key)
	if !ok {
		return nil, fmt.Errorf("keyspace: the disk has no value of the key %q", e.key)
	}
	return appendEntry([]byte{tagEntry}, e.key, value), nil
}

func appendEntry(b, key, value []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func (m Moment) bucketPage(t *subtree, maxBytes int) ([]byte, error) {
	const sumsBytes = 1 + 2*sha256.Size
	b, left := []byte{tagBucket}, len(t.bucket)
	for _, e := range t.bucket {
		left--
		value, ok := m.Get(e.key)
		if !ok {
			return nil, fmt.Errorf("keyspace: the disk has no value of the key %q", e.key)
		}
		size := 1 + 2*binary.MaxVarintLen32 + len(e.key) + len(value)
		if len(b)+size+left*sumsBytes <= maxBytes {
			b = appendEntry(append(b, itemFull), e.key, value)
		} else {
			b = append(append(append(b, itemSums), e.hash[:]...), e.value[:]...)
		}
	}
	return b, nil
}

var errShort = errors.New("keyspace: a page ends within a key")

// item is a key as a page has it.
type item struct {
	entry
	full  bool
	value []byte
}

// readEntry returns the key and value that bytes begin with, and the rest.
func readEntry(b []byte) (item, []byte, error) {
	it := item{full: true}
	for _, part := range []*[]byte{&it.key, &it.value} {
		n, head := binary.Uvarint(b)
		if head <= 0 || n > uint64(len(b)-head) {
			return item{}, nil, errShort
		}
		*part, b = bytes.Clone(b[head:head+int(n)]), b[head+int(n):]
	}
	it.hash, it.entry.value = sha256.Sum256(it.key), sha256.Sum256(it.value)
	return it, b, nil
}

// readBucket returns the bucket that a page is, which must have the sum that is known.
func readBucket(p path, sum Digest, b []byte) ([]item, error) {
	var items []item
	for t := (&subtree{}); ; {
		if len(b) == 0 {
			if t.ref().sum != sum {
				return nil, fmt.Errorf("keyspace: a bucket %v that is not the one of the digest", p)
			}
			return items, checkBucket(p, t.bucket)
		}
		if len(items) == maxBucket {
			return nil, fmt.Errorf("keyspace: a bucket of more than %d keys", maxBucket)
		}
		var it item
		tag, rest := b[0], b[1:]
		switch {
		case tag == itemFull:
			var err error
			if it, b, err = readEntry(rest); err != nil {
				return nil, err
			}
		case tag == itemSums && len(rest) >= 2*sha256.Size:
			it.hash, it.entry.value = Digest(rest), Digest(rest[sha256.Size:])
			b = rest[2*sha256.Size:]
		default:
			return nil, errShort
		}
		items, t.bucket = append(items, it), append(t.bucket, it.entry)
	}
}

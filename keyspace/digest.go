package keyspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// A Digest is a SHA-256 sum: of a state, which is that of the root of its tree; of a part of the
// tree; of a key or a value.
type Digest [sha256.Size]byte

// String returns the first bytes, for people.
func (d Digest) String() string { return hex.EncodeToString(d[:6]) }

// The tree has the keys in the order of their sums. Where a subtree has at most maxBucket keys it
// is a bucket, otherwise a node that has a child for each half byte of the sum. So its shape
// depends on the keys alone. See DESIGN.md for why this is what others cannot make bad.
const (
	fanOut    = 16
	maxBucket = 32
	// maxDepth is how many half bytes there are: a path of that length is of one key.
	maxDepth = 2 * sha256.Size
)

// A path is where a subtree is: the keys whose sums begin with the same half bytes.
type path struct {
	hash  Digest // 0 behind depth
	depth uint8
}

func pathTo(hash Digest, depth uint8) path {
	clear(hash[(depth+1)/2:])
	if depth%2 == 1 {
		hash[depth/2] &= 0xf0
	}
	return path{hash, depth}
}

// half returns a half byte of a sum.
func half(hash Digest, i uint8) uint8 {
	b := hash[i/2]
	if i%2 == 0 {
		return b >> 4
	}
	return b & 0xf
}

func (p path) child(i uint8) path {
	if p.depth%2 == 0 {
		i <<= 4
	}
	p.hash[p.depth/2] |= i
	p.depth++
	return p
}

func (p path) has(hash Digest) bool { return pathTo(hash, p.depth).hash == p.hash }

// String is the path's half bytes as hexadecimal digits.
func (p path) String() string { return "/" + hex.EncodeToString(p.hash[:])[:p.depth] }

// key is the path as a part of a key on disk.
func (p path) key() []byte { return append([]byte{p.depth}, p.hash[:(p.depth+1)/2]...) }

// ref is what a node knows of a child: how many keys are there, and the sum of its content. Without
// keys there is no sum.
type ref struct {
	keys uint64
	sum  Digest
}

// entry is a key in a bucket.
type entry struct {
	hash  Digest // of the key
	value Digest // of the value
	key   []byte // on disk, and unknown in what another replica has told
}

func byHash(a, b entry) int { return bytes.Compare(a.hash[:], b.hash[:]) }

// subtree is a node or a bucket.
type subtree struct {
	node     bool
	children [fanOut]ref
	bucket   []entry // in the order of their hashes
}

// The first byte of a subtree says what it is.
const (
	tagBucket = 1
	tagNode   = 2
)

// Empty returns the digest of a state without keys.
func Empty() Digest { return (&subtree{}).ref().sum }

func (t *subtree) ref() ref {
	keys := uint64(len(t.bucket))
	if t.node {
		for _, c := range t.children {
			keys += c.keys
		}
	}
	return ref{keys, sha256.Sum256(t.content())}
}

// content is what a subtree's sum is of. Those of a node and of a bucket differ in the first byte,
// and all that follows has a fixed length, so no two subtrees have the same content.
func (t *subtree) content() []byte {
	if t.node {
		return t.record()
	}
	b := append(make([]byte, 0, 1+len(t.bucket)*2*sha256.Size), tagBucket)
	for _, e := range t.bucket {
		b = append(append(b, e.hash[:]...), e.value[:]...)
	}
	return b
}

// record is a subtree on disk. A bucket has the keys there, of which it is easier to take the sum
// again than to read it.
func (t *subtree) record() []byte {
	if t.node {
		b := append(make([]byte, 0, nodeBytes), tagNode)
		for _, c := range t.children {
			b = append(binary.BigEndian.AppendUint64(b, c.keys), c.sum[:]...)
		}
		return b
	}
	size := 1
	for _, e := range t.bucket {
		size += sha256.Size + binary.MaxVarintLen32 + len(e.key)
	}
	b := append(make([]byte, 0, size), tagBucket)
	for _, e := range t.bucket {
		b = binary.AppendUvarint(append(b, e.value[:]...), uint64(len(e.key)))
		b = append(b, e.key...)
	}
	return b
}

// nodeBytes is how long a node is, as bytes.
const nodeBytes = 1 + fanOut*(8+sha256.Size)

// decodeNode returns a node from its content, which is its record too. What a sum vouches for
// cannot be wrong; what is on a disk can.
func decodeNode(b []byte) (*subtree, error) {
	if len(b) != nodeBytes || b[0] != tagNode {
		return nil, fmt.Errorf("keyspace: %d bytes are no node", len(b))
	}
	t, sum := &subtree{node: true}, uint64(0)
	for i := range t.children {
		at := b[1+i*(8+sha256.Size):]
		c := ref{keys: binary.BigEndian.Uint64(at), sum: Digest(at[8:])}
		if sum += c.keys; sum < c.keys || (c.keys == 0) != (c.sum == Digest{}) {
			return nil, fmt.Errorf("keyspace: child %d of a node has %d keys and the sum %v", i, c.keys, c.sum)
		}
		t.children[i] = c
	}
	if sum <= maxBucket {
		return nil, fmt.Errorf("keyspace: a node of %d keys, which are a bucket's", sum)
	}
	return t, nil
}

// decodeRecord returns the subtree that is on disk at a path.
func decodeRecord(p path, b []byte) (*subtree, error) {
	if len(b) == nodeBytes && b[0] == tagNode {
		return decodeNode(b)
	}
	if len(b) == 0 || b[0] != tagBucket {
		return nil, fmt.Errorf("keyspace: %d bytes are no subtree", len(b))
	}
	// An entry takes that many bytes and its key.
	t := &subtree{bucket: make([]entry, 0, min(len(b)/(sha256.Size+1), maxBucket))}
	for b = b[1:]; len(b) > 0; {
		if len(b) < sha256.Size {
			return nil, fmt.Errorf("keyspace: a bucket ends within a sum")
		}
		e := entry{value: Digest(b)}
		b = b[sha256.Size:]
		n, head := binary.Uvarint(b)
		if head <= 0 || n > uint64(len(b)-head) {
			return nil, fmt.Errorf("keyspace: a bucket ends within a key")
		}
		e.key = b[head : head+int(n) : head+int(n)]
		b = b[head+int(n):]
		e.hash = sha256.Sum256(e.key)
		t.bucket = append(t.bucket, e)
	}
	return t, checkBucket(p, t.bucket)
}

// checkBucket returns an error if entries are no bucket at a path.
func checkBucket(p path, bucket []entry) error {
	if len(bucket) > maxBucket {
		return fmt.Errorf("keyspace: a bucket of %d keys; there are at most %d", len(bucket), maxBucket)
	}
	for i, e := range bucket {
		switch {
		case !p.has(e.hash):
			return fmt.Errorf("keyspace: a key of another part, %v, is in the bucket %v", e.hash, p)
		case i > 0 && byHash(bucket[i-1], e) >= 0:
			return fmt.Errorf("keyspace: the keys of the bucket %v are out of order", p)
		}
	}
	return nil
}

// find returns the entry of a key.
func (t *subtree) find(hash Digest) (entry, bool) {
	i, ok := slices.BinarySearchFunc(t.bucket, entry{hash: hash}, byHash)
	if !ok {
		return entry{}, false
	}
	return t.bucket[i], true
}

// below returns the entries of a bucket that are at a path below it.
func (t *subtree) below(p path) *subtree {
	out := &subtree{}
	for _, e := range t.bucket {
		if p.has(e.hash) {
			out.bucket = append(out.bucket, e)
		}
	}
	return out
}

// child returns what the child of a subtree is, that of a bucket as if it was a node.
func (t *subtree) child(at path) ref {
	if t.node {
		return t.children[half(at.hash, at.depth-1)]
	}
	if below := t.below(at); len(below.bucket) > 0 {
		return below.ref()
	}
	return ref{}
}
